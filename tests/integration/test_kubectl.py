"""The real kubectl, where there is one, against the emulator: what the docs show is what it prints."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from local.kubernetes.http_server import KubernetesServer
from tests.support.describe import describe, settled
from tests.support.described_pods import CASES

KUBECTL = shutil.which("kubectl")
pytestmark = [
    pytest.mark.network,
    pytest.mark.skipif(KUBECTL is None, reason="no kubectl here; tests/support/describe.py stands in for it"),
]
#: kubectl's clock is the machine's own, the run's is not.
_AGE = re.compile(r"(?<=\s)\d+[smhdy](\d+[smhd])?(?=[\s)])")


def _comparable(text: str) -> list[str]:
    return [re.sub(r"\s{2,}", "  ", _AGE.sub("AGE", line)) for line in settled(text).splitlines()]


@pytest.mark.parametrize("case", CASES)
def test_describe_prints_what_our_renderer_does(case: str, tmp_path: Path) -> None:
    world = CASES[case]()
    server = KubernetesServer(world.emulator).start()
    config = {
        "clusters": [{"name": "local", "cluster": {"server": server.url}}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": ""}}],
        "current-context": "local",
    }
    (tmp_path / "config").write_text(json.dumps(config))
    try:
        told = subprocess.run(
            [str(KUBECTL), "--kubeconfig", str(tmp_path / "config"), "describe", "pod", "train"],
            env={**os.environ, "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout
    finally:
        server.stop()
    assert _comparable(told) == _comparable(describe(world))
