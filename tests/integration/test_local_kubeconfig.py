"""The local stack for a person with kubectl, and a second one that stays out of the first one's way."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from nebula.kubernetes.client import KubernetesClient
from nebula.kubernetes.transport import StaticToken, Transport, new_session
from pydantic import SecretStr

from local import run_files, stack
from local.deployment import ROOT
from local.kubernetes import openapi
from local.kubernetes.resources import RESOURCES
from local.sockets import listen

pytestmark = pytest.mark.network


@pytest.fixture
def config(tmp_path: Path) -> Iterator[Path]:
    """The kubeconfig of servers that run."""
    path = tmp_path / "kubeconfig"
    command = [sys.executable, "-m", "local.servers", "--dir", str(tmp_path / "run"), "--kubeconfig", str(path)]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/layers/provider/python"}
    process = subprocess.Popen([*command, "--fixtures"], cwd=ROOT, env=environment, start_new_session=True)
    until = time.monotonic() + 60
    while not path.exists():
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.05)
    yield path
    os.killpg(process.pid, signal.SIGTERM)
    process.wait(20)


def test_the_kubeconfig_opens_the_cluster_over_tls(config: Path) -> None:
    read = json.loads(config.read_text())
    (cluster,), (user,), (context,) = read["clusters"], read["users"], read["contexts"]
    assert context["context"] == {"cluster": cluster["name"], "user": user["name"]}
    assert read["current-context"] == context["name"]
    assert cluster["cluster"]["server"].startswith("https://127.0.0.1:")
    authority = base64.b64decode(cluster["cluster"]["certificate-authority-data"]).decode()
    tokens = StaticToken(SecretStr(user["user"]["token"]))
    api = KubernetesClient("c", Transport(cluster["cluster"]["server"], tokens, new_session(authority)))
    assert api.list_pods()
    assert stat.S_IMODE(config.stat().st_mode) == 0o600


def test_kubectl_is_told_that_the_server_checks_fields_of_every_kind() -> None:
    index = openapi.describe("/openapi/v3")
    assert index is not None
    checked = set()
    for base in index["paths"]:
        document = openapi.describe(f"/openapi/v3/{base}")
        assert document is not None
        for operations in document["paths"].values():
            patch = operations["patch"]
            assert [one["name"] for one in patch["parameters"]] == ["fieldValidation"]
            checked.add(patch["x-kubernetes-group-version-kind"]["kind"])
    assert checked == {resource.kind for resource in RESOURCES}
    assert openapi.describe("/openapi/v3/apis/unknown/v1") is None
    assert openapi.describe("/openapi/v2") is None


def test_a_second_stack_leaves_the_first_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / ".local" / "stack"
    monkeypatch.setattr(run_files, "DEFAULT_DIRECTORY", directory)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    with run_files.only_one(directory) as first:
        assert first
        directory.mkdir()
        (directory / "servers.json").write_text("{}")
        assert stack.main() == 1
        assert (directory / "servers.json").read_text() == "{}"
    assert "runs already" in capsys.readouterr().err
    with run_files.only_one(directory) as again:
        assert again


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit, match=f"port {port} of this machine"):
            listen(port)


def test_a_stack_that_does_not_start_says_why(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        made = stack.Stack(tmp_path / "stack", server_options=("--aws-port", port))
        with pytest.raises(stack.StackFailedError, match=f"port {port} of this machine"):
            made.start_servers()
