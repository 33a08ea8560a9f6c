"""The control plane's role in a cluster grants every call that the workflows make, and no other verb."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.support.world import World

ROLE = Path(__file__).parents[2] / "cluster/rbac/control-plane.yaml"
#: Served to a cluster only in moments that this life does not have: pull secrets, the cluster's UID, removal.
RARE = {
    ("get", "secrets"),
    ("get", "configmaps"),
    ("get", "namespaces"),
    ("delete", "nodes"),
    ("patch", "events"),
    ("patch", "nodes/status"),
}
#: The forwarder's and the test's own calls, which are not the control plane's.
OTHERS = {("create", "pods"), ("create", "nodepools"), ("create", "namespaces"), ("delete", "nodepools")}


def _granted() -> set[tuple[str, str]]:
    documents: list[Any] = list(yaml.safe_load_all(ROLE.read_text()))
    return {
        (verb, resource)
        for document in documents
        for rule in document.get("rules", [])
        for verb in rule["verbs"]
        for resource in rule["resources"]
    }


def test_the_role_grants_what_is_called_and_nothing_else() -> None:
    world = World()
    world.create_pod()
    world.create_pod("other", labels={"nebula.inftyai.com/nodepool": "missing"})
    world.pump()
    world.run(2)
    world.delete_pod()
    world.pump()
    world.run(13)
    called = set(world.emulator.calls) - OTHERS
    assert called <= _granted(), called - _granted()
    assert _granted() - called <= RARE, _granted() - called - RARE


def test_nothing_may_list_or_watch_secrets() -> None:
    assert {verb for verb, resource in _granted() if resource in ("secrets", "configmaps")} == {"get"}
