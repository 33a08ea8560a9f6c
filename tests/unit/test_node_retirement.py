"""The virtual Node is there while claims live, and goes ten minutes after its last Pod."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from nebula.domain.claim import Claim
from nebula.domain.unreadable import UnreadableClaim
from nebula.stores.memory_claims import MemoryClaimStore

from local.kubernetes.resources import PODS
from tests.support.kubernetes_api import LEASES
from tests.support.world import World, running

NODE = "nebula-simulated"
IDLE_MINUTES = 10


def _there(world: World) -> bool:
    return world.api.get_node(NODE) is not None


def _ended() -> World:
    """A world whose only Pod ran and was deleted."""
    world = World()
    assert not _there(world)
    world.create_pod()
    world.pump()
    world.minute()
    assert _there(world)
    world.delete_pod()
    world.pump()
    world.run(2)
    assert world.pod() is None
    return world


def test_it_goes_ten_minutes_after_the_last_pod_and_not_before() -> None:
    world = _ended()
    world.run(IDLE_MINUTES - 2)
    assert _there(world)
    world.run(3)
    assert not _there(world)


def test_a_pod_in_between_starts_the_ten_minutes_again() -> None:
    world = _ended()
    world.run(IDLE_MINUTES - 3)
    world.create_pod("other")
    world.pump()
    world.minute()
    world.delete_pod("other")
    world.pump()
    world.run(5)
    assert _there(world)
    world.run(IDLE_MINUTES)
    assert not _there(world)


def test_a_finished_pod_that_is_still_bound_keeps_it() -> None:
    world = World()
    world.create_pod(restartPolicy="Never")
    world.pump()
    world.minute()
    world.simulated.console.exit(world.billed()[0], 0)
    world.run(IDLE_MINUTES + 5)
    assert world.billed() == []
    assert _there(world)
    world.delete_pod()
    world.run(IDLE_MINUTES + 3)
    assert not _there(world)


def test_a_pod_of_somebody_else_s_on_it_keeps_it() -> None:
    world = _ended()
    stray = {"metadata": {"name": "agent"}, "spec": {"nodeName": NODE, "containers": [{"name": "a", "image": "i"}]}}
    world.emulator.create(PODS, "default", stray)
    world.run(IDLE_MINUTES + 5)
    assert _there(world)
    world.emulator.handle("DELETE", "/api/v1/namespaces/default/pods/agent", {}, {}, b'{"gracePeriodSeconds": 0}')
    world.run(IDLE_MINUTES + 3)
    assert not _there(world)


def test_a_pod_of_somebody_else_s_that_waits_for_its_end_does_not_keep_it() -> None:
    """A DaemonSet's that tolerates every taint, deleted: no kubelet ends it, the end of its Node does."""
    world = _ended()
    stray = {"metadata": {"name": "agent"}, "spec": {"nodeName": NODE, "containers": [{"name": "a", "image": "i"}]}}
    world.emulator.create(PODS, "default", stray)
    world.emulator.handle("DELETE", "/api/v1/namespaces/default/pods/agent", {}, {}, b"")
    assert world.pod("agent") is not None
    world.run(IDLE_MINUTES + 3)
    assert not _there(world)


def test_the_pod_of_a_daemon_set_does_not_keep_it() -> None:
    """It tolerates every taint, was never started, and would be on the Node for as long as there is one."""
    world = _ended()
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u", "controller": True}
    stray = {
        "metadata": {"name": "agent", "ownerReferences": [owner]},
        "spec": {"nodeName": NODE, "containers": [{"name": "a", "image": "i"}]},
    }
    world.emulator.create(PODS, "default", stray)
    world.run(IDLE_MINUTES + 3)
    assert not _there(world)


def test_one_that_was_deleted_with_its_lease_is_made_again_by_the_next_tick_while_a_claim_names_it() -> None:
    """Kubernetes' garbage collector takes the Lease at once, and the Node's Pods within a minute."""
    world = World()
    world.create_pod()
    world.pump()
    world.minute()
    for path in (f"/api/v1/nodes/{NODE}", f"{LEASES}/{NODE}"):
        assert world.emulator.handle("DELETE", path, {}, {}, b"").status == 200
    world.tick()
    assert _there(world)
    assert world.api.get_lease(NODE) is not None
    assert running(world.pod())


def test_it_comes_back_for_the_next_pod() -> None:
    world = _ended()
    world.run(IDLE_MINUTES + 3)
    assert not _there(world)
    world.create_pod("next")
    world.pump()
    world.minute()
    assert _there(world)
    pod = world.pod("next")
    assert pod is not None
    assert pod["spec"]["nodeName"] == NODE


class Counted(MemoryClaimStore):
    """A ledger that counts how often the claims of a cluster are read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def live(self, cluster: str, unreadable: list[UnreadableClaim] | None = None) -> Iterator[Claim]:
        self.reads += 1
        return super().live(cluster, unreadable)


def test_a_provider_without_a_node_costs_a_tick_no_further_read_of_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    claims = Counted()
    world = World(claims=claims)
    world.create_pod()
    world.pump()
    world.minute()
    read: list[int] = []
    for names in (["simulated"], ["simulated", "modal", "aws"]):
        monkeypatch.setattr(world.providers, "names", names.copy)
        claims.reads = 0
        world.tick()
        read.append(claims.reads)
    assert read == [1, 1]
