"""What installs the forwarder: valid, restricted, with the rights that its calls need and an image that can start."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event as Flag
from typing import Any

import pytest
import requests
import yaml
from nebula.kubernetes.quantity import parse_quantity
from nebula.kubernetes.transport import StaticToken, Transport
from pydantic import SecretStr

from cluster.forwarder import __main__ as entry
from cluster.forwarder.books import NodePoolBook, PodBook
from cluster.forwarder.meters import Meters, serve
from cluster.forwarder.service import NODE_POOLS, PODS, Forwarder
from cluster.forwarder.watcher import Pace, Watcher
from local.kubernetes.access import User
from local.kubernetes.adapter import SERVER, session
from local.kubernetes.resources import BY_KIND
from local.kubernetes.resources import PODS as POD_KIND
from local.kubernetes.server import Emulator
from tests.support.kustomize import manifests

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "cluster/forwarder"
Object = dict[str, Any]


def documents() -> list[Object]:
    """What the kustomization installs, its generated ConfigMap aside."""
    return manifests(FOLDER)


def one(kind: str) -> Object:
    return next(document for document in documents() if document["kind"] == kind)


def pod_spec() -> Object:
    found: Object = one("Deployment")["spec"]["template"]["spec"]
    return found


def test_every_manifest_is_accepted_by_the_api_server() -> None:
    emulator = Emulator(schedule=False)
    accepted = []
    for document in [*manifests(ROOT / "cluster/namespace"), *documents()]:
        if document["kind"] == "Deployment":
            template = document["spec"]["template"]
            pod = {"metadata": {**template["metadata"], "name": "f"}, "spec": template["spec"]}
            accepted.append(emulator.create(POD_KIND, "nebula-system", pod)["kind"])
            continue
        resource = BY_KIND[document["apiVersion"], document["kind"]]
        accepted.append(emulator.create(resource, document["metadata"].get("namespace", ""), document)["kind"])
    assert sorted(accepted) == ["ClusterRole", "ClusterRoleBinding", "Namespace", "Pod", "ServiceAccount"]


def test_there_is_one_replica_and_never_two() -> None:
    spec = one("Deployment")["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {"type": "Recreate"}
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()


def test_the_pod_passes_the_restricted_standard_and_writes_nowhere() -> None:
    spec = pod_spec()
    (container,) = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC", "volumes"} & set(spec)


def test_its_memory_request_is_what_it_was_measured_to_stay_under() -> None:
    resources = pod_spec()["containers"][0]["resources"]
    assert parse_quantity(resources["requests"]["memory"]) == 100 * 1024**2
    assert parse_quantity(resources["limits"]["memory"]) > 100 * 1024**2


def test_its_role_grants_the_calls_it_makes_and_no_other() -> None:
    user = "system:serviceaccount:nebula-system:nebula-forwarder"
    emulator = Emulator(schedule=False, bookmark_interval=0.01, rbac=True, tokens={"t": User(user)})
    for document in documents():
        if document["kind"].startswith("ClusterRole"):
            emulator.create(BY_KIND[document["apiVersion"], document["kind"]], "", document)
    transport = Transport(SERVER, StaticToken(SecretStr("t")), session(emulator), sleep=lambda _: None)
    stop, selector = Flag(), "nebula.inftyai.com/enabled=true"
    stop.set()
    for path, book in ((PODS, PodBook("c")), (NODE_POOLS, NodePoolBook("c"))):
        watcher = Watcher("w", transport, path, selector, book, lambda _: None, Meters(), pace=Pace(watch=1))
        watcher.watch(watcher.list_all(), stop)
    granted = {
        (verb, kind) for rule in one("ClusterRole")["rules"] for verb in rule["verbs"] for kind in rule["resources"]
    }
    assert set(emulator.calls) == granted
    assert granted == {(verb, kind) for verb in ("list", "watch") for kind in ("pods", "nodepools")}


def test_the_binding_names_the_account_that_the_pod_runs_as() -> None:
    (subject,) = one("ClusterRoleBinding")["subjects"]
    account = one("ServiceAccount")["metadata"]
    assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])
    assert pod_spec()["serviceAccountName"] == account["name"]
    assert one("ClusterRoleBinding")["roleRef"]["name"] == one("ClusterRole")["metadata"]["name"]


def test_the_settings_are_those_that_the_entry_point_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("t")
    monkeypatch.setattr(entry, "new_session", lambda _ca, pool_size: session(Emulator()))
    (tmp_path / "ca.crt").write_text("unused here")
    settings = dict(line.split("=", 1) for line in (FOLDER / "settings.env").read_text().split())
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    built = entry.build({**settings, "KUBERNETES_SERVICE_HOST": "fd00::1"}, tmp_path)
    assert isinstance(built, Forwarder)
    for name in ("NEBULA_CLUSTER", "NEBULA_EVENT_BUS"):
        with pytest.raises(KeyError, match=name):
            entry.build({k: v for k, v in settings.items() if k != name} | {"KUBERNETES_SERVICE_HOST": "h"}, tmp_path)


def test_the_sample_overlay_sets_every_setting_and_the_image() -> None:
    overlay = yaml.safe_load((ROOT / "cluster/samples/forwarder/kustomization.yaml").read_text())
    base = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
    literals = {line.partition("=")[0] for line in overlay["configMapGenerator"][0]["literals"]}
    assert literals == {line.partition("=")[0] for line in (FOLDER / "settings.env").read_text().split()}
    assert overlay["images"][0]["name"] == base["images"][0]["newName"]
    assert base["images"][0]["name"] == pod_spec()["containers"][0]["image"]
    assert (ROOT / "cluster/samples/forwarder" / overlay["resources"][0]).resolve() == FOLDER


# The image


def _pins(path: Path) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)$", path.read_text(), flags=re.MULTILINE))


def _imported(path: Path) -> Iterator[str]:
    """Modules that running a file imports: those only a type checker reads are left out."""
    todo: list[ast.AST] = [ast.parse(path.read_text())]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            todo += node.orelse
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        else:
            todo += ast.iter_child_nodes(node)


def _file(module: str) -> Path | None:
    for root in (ROOT, ROOT / "layers/provider/python"):
        stem = root.joinpath(*module.split("."))
        for found in (stem.with_suffix(".py"), stem / "__init__.py"):
            if found.exists():
                return found
    return None


def _closure() -> tuple[set[Path], set[str]]:
    """(our files, others' top-level modules) that ``python -m cluster.forwarder`` imports."""
    todo, seen, foreign = [FOLDER / "__main__.py"], set(), set()
    while todo:
        path = todo.pop()
        seen.add(path)
        for module in _imported(path):
            ours = module.partition(".")[0] in ("nebula", "cluster", "local")
            found = _file(module) if ours else None
            if not ours:
                foreign.add(module.partition(".")[0])
            elif found is not None and found not in seen:
                todo.append(found)
    return seen, foreign


def test_the_image_holds_every_module_that_it_imports() -> None:
    dockerfile = (FOLDER / "Dockerfile").read_text()
    copied = [ROOT / source for source in re.findall(r"^COPY (?!--)(\S+) ", dockerfile, flags=re.MULTILINE)]
    assert len(copied) == 3
    assert all(path.exists() for path in copied)
    ours, _ = _closure()
    assert all(any(path.is_relative_to(folder) for folder in copied) for path in ours), ours
    allowed = re.findall(r"^!(\S+)$", (FOLDER / "Dockerfile.dockerignore").read_text(), flags=re.MULTILINE)
    assert all(any(path.is_relative_to(ROOT / name) for name in allowed) for path in copied)


def test_it_imports_nothing_that_its_requirements_lack_and_pins_what_the_tests_ran_with() -> None:
    _, foreign = _closure()
    pins = _pins(FOLDER / "requirements.txt")
    assert foreign - set(sys.stdlib_module_names) <= {name.replace("-", "_") for name in pins}
    assert pins.items() <= _pins(ROOT / "layers/dependencies/requirements.txt").items()


def test_the_image_runs_as_the_user_that_the_pod_asks_for() -> None:
    dockerfile = (FOLDER / "Dockerfile").read_text()
    security = pod_spec()["securityContext"]
    assert f"USER {security['runAsUser']}:{security['runAsGroup']}\n" in dockerfile
    assert 'ENTRYPOINT ["python", "-m", "cluster.forwarder"]' in dockerfile


@pytest.mark.network
def test_the_probe_asks_where_the_forwarder_answers() -> None:
    server = serve(Meters(), 0, "127.0.0.1")
    probe = pod_spec()["containers"][0]["livenessProbe"]["httpGet"]
    try:
        base = f"http://127.0.0.1:{server.server_address[1]}"
        assert requests.get(base + probe["path"], timeout=5).status_code == 200
        assert "nebula_forwarder_lists_total 0" in requests.get(base + "/metrics", timeout=5).text
        assert requests.get(base + "/other", timeout=5).status_code == 404
    finally:
        server.shutdown()
        server.server_close()
