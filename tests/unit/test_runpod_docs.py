"""What ``docs/providers/runpod.md`` says is so."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from textwrap import dedent

import pytest
import yaml
from nebula.domain.nodepool import IngressAuthentication
from nebula.kubernetes.node_pool import node_pool_from_object
from nebula.providers.runpod import marks, translate
from nebula.providers.runpod.instances import STATES
from nebula.providers.runpod.provider import PROVISION_SECONDS

from local.runpod import Simulator

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "providers" / "runpod.md").read_text()
BLOCKS = [(kind, dedent(block)) for kind, block in re.findall(r"```(\w+)\n(.*?)```", TEXT, re.DOTALL)]


def test_its_node_pools_are_valid() -> None:
    first, second = (yaml.safe_load(block) for kind, block in BLOCKS if kind == "yaml")
    assert node_pool_from_object(first).providers[0].regions == ("eu", "US-TX-3")
    opened = node_pool_from_object(first | {"spec": first["spec"] | second["spec"]})
    assert opened.ingress.authentication is IngressAuthentication.APPLICATION


@pytest.mark.parametrize(
    "command",
    [line for kind, block in BLOCKS if kind == "sh" for line in block.splitlines() if line.startswith("curl")],
)
def test_its_examples_of_steering_work(command: str) -> None:
    words = shlex.split(command, comments=True)
    url = next(word for word in words if "/_control/" in word)
    method = words[words.index("-X") + 1] if "-X" in words else "GET"
    body = words[words.index("-d") + 1].encode() if "-d" in words else b""
    assert Simulator().control(method, url.split("/_control/")[1], body).status in (200, 204)


def test_its_numbers_and_names_are_those_of_the_code() -> None:
    assert f"{translate.MAX_BODY_BYTES:,} bytes" in TEXT
    assert f"GB, {translate.DEFAULT_DISK_GB} when" in TEXT
    assert f"at most {PROVISION_SECONDS:.0f} s" in TEXT
    for word in (*marks.RESERVED, *STATES):
        assert f"`{word}`" in TEXT


def test_every_metric_of_the_provider_is_named() -> None:
    package = ROOT / "layers" / "provider" / "python" / "nebula" / "providers" / "runpod"
    code = "".join(file.read_text() for file in package.glob("*.py"))
    metrics = set(re.findall(r'\.count\("(\w+)"', code))
    assert metrics
    assert all(f"`{metric}`" in TEXT for metric in metrics)
