"""The control plane's role in a cluster grants every call that the workflows make, and no other verb."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from nebula.clock import ManualClock
from nebula.kubernetes.client import KubernetesClient
from nebula.kubernetes.transport import Transport
from nebula.providers.errors import NoCapacityError
from nebula.providers.simulated import SimulatedProvider
from nebula.providers.simulated.script import Call

from local.kubernetes.adapter import SERVER, session
from local.kubernetes.resources import CONFIG_MAPS, SECRETS, parse
from tests.support.world import CLUSTER, START, FixedClusters, World, running, until_true

ROLES = Path(__file__).parents[2] / "cluster/rbac/control-plane.yaml"
DOCUMENTS: list[dict[str, Any]] = list(yaml.safe_load_all(ROLES.read_text()))
VERBS = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}
#: verb, group, resource with subresource, where: a name, a namespace, or neither.
Grant = tuple[str, str, str, str]


class Recorder(Transport):
    """The product's transport that writes down what it is asked for, in RBAC's words."""

    def __init__(self, world: World) -> None:
        super().__init__(SERVER, None, session(world.emulator))
        self.made: set[Grant] = set()

    def call(self, method: str, path: str, *, query: Mapping[str, str] | None = None, **rest: Any) -> dict[str, Any]:
        """As ``Transport.call``."""
        route = parse(path)
        verb = VERBS.get(method) or ("get" if route.name else "list")
        resource = route.resource.plural + (f"/{route.subresource}" if route.subresource else "")
        self.made.add((verb, route.resource.group, resource, _where(route.resource.plural, verb, route.name)))
        return super().call(method, path, query=query, **rest)


def _where(resource: str, verb: str, name: str) -> str:
    """Only these are granted by name, and a create never can be."""
    named = resource in ("nodes", "leases", "namespaces") and verb != "create"
    return _any_provider(name) if named else ""


def _any_provider(name: str) -> str:
    return "nebula-<provider>" if name.startswith("nebula-") else name


def _granted() -> set[Grant]:
    return {
        (verb, group, resource, _any_provider(name))
        for document in DOCUMENTS
        for rule in document.get("rules", [])
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
    }


def _world() -> tuple[World, Recorder]:
    clock = ManualClock(START)
    provider = SimulatedProvider(clock, name="runpod")
    world = World(provider, clock=clock)
    recorder = Recorder(world)
    world.api = KubernetesClient(CLUSTER, recorder)
    world.clusters = FixedClusters(world.api)
    world.simulated = provider
    return world, recorder


def _main(**more: Any) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": "1"}
    return {"name": "main", "image": "registry.example.com/train:1", "resources": {"limits": limits}, **more}


def test_the_role_grants_what_is_called_and_nothing_else() -> None:
    world, recorder = _world()
    world.emulator.create(SECRETS, "default", {"metadata": {"name": "s"}, "data": {"A": "dmFsdWU="}})
    world.emulator.create(CONFIG_MAPS, "default", {"metadata": {"name": "c"}, "data": {"B": "value"}})
    both = [{"secretRef": {"name": "s"}}, {"configMapRef": {"name": "c"}}]
    world.create_pod(containers=[_main(envFrom=both)])
    world.create_pod("other", labels={"nebula.inftyai.com/nodepool": "missing"})
    world.create_pod("vanishing")
    world.simulated.script.fail(Call.PROVISION, NoCapacityError("sold out"), times=8)
    world.pump()
    world.run(3)
    until_true(world, lambda: running(world.pod()))
    world.emulator.controllers.lapse("nebula-runpod")
    world.run(1)
    world.emulator.handle("DELETE", "/api/v1/namespaces/default/pods/vanishing", {"gracePeriodSeconds": "0"}, {}, b"")
    world.run(15)
    world.delete_pod("other")
    world.delete_pod()
    world.pump()
    world.run(13)
    assert recorder.made == _granted()


def test_every_rule_with_nodes_by_name_has_the_same_names() -> None:
    lists = [set(r["resourceNames"]) for d in DOCUMENTS for r in d.get("rules", []) if "resourceNames" in r]
    nodes = [names for names in lists if "kube-system" not in names]
    assert "nebula-runpod" in nodes[0]
    assert all(names == nodes[0] for names in nodes)
    assert len(nodes) == 3


def test_nothing_may_list_or_watch_secrets() -> None:
    assert {verb for verb, _, resource, _ in _granted() if resource in ("secrets", "configmaps")} == {"get"}


def test_leases_are_granted_in_their_namespace_only() -> None:
    where = {
        d["metadata"].get("namespace") for d in DOCUMENTS for r in d.get("rules", []) if "leases" in r["resources"]
    }
    assert where == {"kube-node-lease"}
