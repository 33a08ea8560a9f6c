"""Pages lead somewhere: every relative link and every anchor, and what the cluster's page tells one to type."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from local.template import load

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "cluster").rglob("*.md")])
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def _prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text())


def _anchors(page: Path) -> set[str]:
    """Those that GitHub makes of headings."""
    heads = re.findall(r"^#+ (.+)$", _prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", head)).strip().lower().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    broken = []
    for link in _LINK.findall(_prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in _anchors(target)):
            broken.append(link)
    assert broken == []


KUBERNETES = (ROOT / "docs/kubernetes.md").read_text()


def test_outputs_and_parameters_that_one_types_exist() -> None:
    template = load()
    outputs = set(re.findall(r"out ([A-Z]\w+)", KUBERNETES))
    assert {"InstallationId", "FunctionRoleArns", "ForwarderPolicyArn", "EventBusArn"} <= outputs
    assert outputs <= set(template["Outputs"])
    parameters = set(re.findall(r"\b(Vpc\w+)=|`(\w+KeyArn)`", KUBERNETES))
    assert {name for pair in parameters for name in pair if name} <= set(template["Parameters"])


def test_files_and_folders_that_one_types_exist() -> None:
    typed = re.findall(r"(?:-k|-f) (cluster/[\w/.-]*)", KUBERNETES)
    assert "cluster/account" in typed
    for name in set(typed) - {"cluster/samples/my-forwarder"}:
        assert (ROOT / name).exists(), name


def test_roles_accounts_and_groups_that_one_types_exist() -> None:
    texts = "\n".join(path.read_text() for path in (ROOT / "cluster").rglob("*.yaml"))
    named = {d["metadata"]["name"] for d in yaml.safe_load_all((ROOT / "cluster/rbac/control-plane.yaml").read_text())}
    assert "nebula-references" in named
    for name in re.findall(r"--(?:clusterrole|group|service-account|serviceaccount)[= ]([\w:-]+)", KUBERNETES):
        assert name.rsplit(":", 1)[-1] in texts, name
