"""Placement as a workflow: what it reads, what it writes, and what it leaves alone."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from nebula.clock import ManualClock
from nebula.domain.claim import Phase, claim_id_for
from nebula.domain.nodepool import Failover
from nebula.events.details import DetailType
from nebula.providers.errors import NoCapacityError
from nebula.providers.simulated import SimulatedProvider
from nebula.providers.simulated.script import Call
from nebula.workflows.place import place_pod
from nebula.workflows.placing import REDRIVE

from tests.support.placements import place
from tests.support.world import CLUSTER, START, World, pool_object

SECOND = timedelta(seconds=1)


def test_a_placed_claim_carries_all_that_provisioning_needs() -> None:
    world = World(pool=pool_object(failover={"blocklistTTL": "45s"}, budgetPerHour="10"))
    world.create_pod(announce=False)
    claim = place(world)
    assert claim is not None
    assert (claim.phase, claim.reason) == (Phase.PLACED, "Placed")
    assert claim.candidate is not None
    assert claim.candidate.price.total == Decimal("2.00")
    assert claim.failover == Failover(blocklist_ttl=timedelta(seconds=45))
    assert claim.next_action_at == world.clock.now() + REDRIVE
    assert claim.pod_fields_hash
    assert world.committed() == Decimal("2.00")
    assert [e.detail_type for e in world.publisher.events] == [DetailType.CLAIM_PLACED]


def test_a_second_delivery_changes_nothing() -> None:
    world = World()
    world.create_pod(announce=False)
    first = place(world)
    writes = world.claims.writes
    assert place(world) == first
    assert world.claims.writes == writes
    assert len(world.publisher.events) == 1


def test_a_lost_announcement_is_not_an_error() -> None:
    world = World()
    world.create_pod(announce=False)
    world.publisher.fail_next()
    claim = place(world)
    assert claim is not None
    assert claim.phase is Phase.PLACED
    world.clock.advance(REDRIVE)
    assert [due.claim_id for due in world.claims.due(world.clock.now())] == [claim.claim_id]


@pytest.mark.parametrize(
    "change",
    [
        {"labels": {"nebula.inftyai.com/enabled": "false"}},
        {"schedulingGates": []},
        {"schedulingGates": [{"name": "nebula.inftyai.com/provider-selection"}, {"name": "kueue.x-k8s.io/admission"}]},
    ],
)
def test_a_pod_that_is_not_ours_is_left_alone(change: dict[str, Any]) -> None:
    world = World()
    world.create_pod(announce=False, **change)
    assert place(world) is None
    assert world.claims.all() == []


def test_another_pod_of_the_same_name_is_not_placed() -> None:
    world = World()
    world.create_pod(announce=False)
    assert place_pod(world.services("placement"), CLUSTER, "default", "train", "old-uid") is None
    assert place_pod(world.services("placement"), CLUSTER, "default", "never", "uid") is None
    assert world.claims.all() == []


def test_the_first_placement_makes_the_node_and_the_first_ticks_and_later_ones_only_read() -> None:
    world = World()
    world.create_pod("one", announce=False)
    place(world, "one")
    lease = world.api.get_lease("nebula-simulated")
    assert world.api.get_node("nebula-simulated") is not None
    assert world.ticks.enqueued == 7
    world.clock.advance(10 * SECOND)
    world.create_pod("two", announce=False)
    place(world, "two")
    assert world.ticks.enqueued == 7
    assert world.api.get_lease("nebula-simulated") == lease, "renewing it would stop the status loop's tick"
    world.clock.advance(timedelta(minutes=5))
    world.create_pod("three", announce=False)
    place(world, "three")
    assert world.ticks.enqueued == 14
    assert world.api.get_lease("nebula-simulated") != lease


def test_no_node_is_made_for_a_provider_that_does_not_sell_the_shape() -> None:
    world = World()
    world.create_pod(announce=False, labels={"nebula.inftyai.com/accelerator-type": "GH200"})
    claim = place(world)
    assert claim is not None
    assert claim.reason == "accelerator_unsupported"
    assert world.api.get_node("nebula-simulated") is None


def test_a_claim_moved_by_somebody_else_is_left_as_they_wrote_it(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.create_pod(announce=False)
    pod = world.pod()
    assert pod is not None
    claim_id = claim_id_for(CLUSTER, pod["metadata"]["uid"])
    reads = iter([None])
    real = world.claims.get
    place(world)
    monkeypatch.setattr(world.claims, "get", lambda asked: next(reads, real(asked)))
    again = place(world)
    assert again is not None
    assert (again.claim_id, again.version) == (claim_id, 1)


def test_failover_follows_a_block_within_the_same_chain() -> None:
    clock = ManualClock(START)
    first, second = (SimulatedProvider(clock, name=name) for name in ("first", "second"))
    world = World(first, second, clock=clock)
    first.script.fail(Call.PROVISION, NoCapacityError("none left"))
    world.create_pod()
    world.pump()
    claim = world.claim()
    assert claim.phase is Phase.RELEASED
    assert [a.candidate.provider for a in claim.attempts] == ["first", "second"]
    assert world.telemetry.total("PlacementDecisions") == 2


def test_placement_writes_little(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.create_pod("warm", announce=False)
    place(world, "warm")
    world.create_pod("train", announce=False)
    before = world.claims.writes
    calls: list[str] = []
    handle = world.emulator.handle

    def counting(method: str, *rest: Any) -> Any:
        calls.append(method)
        return handle(method, *rest)

    monkeypatch.setattr(world.emulator, "handle", counting)
    place(world)
    assert world.claims.writes - before == 2, "the claim and the counter"
    assert calls
    assert set(calls) == {"GET"}, "nothing is written in the cluster"


def test_metrics_have_bounded_labels() -> None:
    world = World(pool=pool_object("simulated", "runpod"))
    world.create_pod(announce=False)
    place(world)
    seen = {(name, tuple(sorted(labels.items()))) for name, _, labels in world.telemetry.metrics}
    assert ("PlacementSkips", (("reason", "provider_unconfigured"),)) in seen
    assert ("PlacementDecisions", (("provider", "simulated"),)) in seen
    assert {key for _, labels in seen for key, _ in labels} <= {"provider", "reason"}
