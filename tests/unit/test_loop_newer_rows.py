"""A claim whose row only a newer release can read: the loop goes on for the others, and nothing of it is reclaimed."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from nebula.domain.claim import Claim, Phase, TerminationReason
from nebula.domain.unreadable import UnreadableClaimError
from nebula.workflows.abandon import NotAbandonedError, abandon
from nebula.workflows.announce import announce_due
from nebula.workflows.known_clusters import missing_clusters
from nebula.workflows.place import node_pool_changed
from nebula.workflows.retire_outcome import Kind

from tests.support.lending import POLICY, Lending
from tests.support.mischief import all_ended, force_delete, running_pods, said
from tests.support.world import CLUSTER, FixedClusters, World, pool_object, running

NODE = "nebula-simulated"


@pytest.fixture(params=["", "Hibernating"], ids=["a field", "the phase"])
def newer_phase(request: pytest.FixtureRequest) -> str:
    """What the newer release wrote: a field that does not fit, or a phase that nobody here knows."""
    return str(request.param)


def world_of(count: int, phase: str, **host: Any) -> tuple[World, list[str], Claim]:
    """A world of running Pods, of which the first one's claim is a newer release's."""
    world = World(**host)
    names = running_pods(world, count)
    newer = world.claim(names[0])
    world.claims.make_newer(newer.claim_id, phase)
    take_events_like_a_handler(world)
    return world, names, newer


def take_events_like_a_handler(world: World) -> None:
    """Deliver as a function's batch does: an event about an unreadable claim is taken without effect."""
    deliver = world.deliver

    def taken(raw: dict[str, Any]) -> None:
        try:
            deliver(raw)
        except UnreadableClaimError:
            world.telemetry.count("Defects")

    world.deliver = taken  # type: ignore[method-assign]


def test_the_others_live_and_end_as_ever_and_the_alarm_names_it(newer_phase: str) -> None:
    world, names, newer = world_of(3, newer_phase)
    other = world.claim(names[1])
    world.delete_pod(names[1])
    world.create_pod("late")
    world.run(2)
    assert all_ended(world, [other.claim_id], TerminationReason.POD_DELETED)
    assert running(world.pod(names[2]))
    assert running(world.pod("late"))
    assert said(world, "claims not readable")[0]["claims"] == [newer.claim_id]
    assert world.telemetry.total("Defects") > 0
    assert len(said(world, "swept")) == 2


def test_each_tick_names_it(newer_phase: str) -> None:
    world, _, newer = world_of(2, newer_phase)
    world.tick()
    (told,) = said(world, "claims not readable")
    assert (told["cluster"], told["claims"], told["of"], told["fields"]) == (CLUSTER, [newer.claim_id], 1, "phase")


def test_one_in_a_phase_of_its_own_is_put_off_and_not_announced() -> None:
    world = World(pool=pool_object(maxPricePerHour="0.01"))
    names = ["newer", "other"]
    for name in names:
        world.create_pod(name)
    world.pump()
    newer, other = map(world.claim, names)
    world.claims.make_newer(newer.claim_id, "Hibernating")
    world.clock.advance(timedelta(hours=1))
    assert announce_due(world.services("status_polling")) == 1
    (event,) = world.publisher.take()
    assert event["detail"]["claim_id"] == other.claim_id
    assert world.claims.due(world.clock.now()) == []


def test_its_machine_is_no_orphan_whatever_becomes_of_its_pod(newer_phase: str) -> None:
    world, names, newer = world_of(2, newer_phase)
    force_delete(world, names[0])
    world.run(15)
    assert newer.instance_id in world.billed()
    world.claims.make_older(newer.claim_id)
    world.run(3)
    assert all_ended(world, [newer.claim_id], TerminationReason.POD_DELETED)
    assert newer.instance_id not in world.billed()


def test_its_node_stays_although_no_claim_that_can_be_read_names_it(newer_phase: str) -> None:
    world, names, newer = world_of(1, newer_phase)
    force_delete(world, names[0])
    world.run(15)
    assert world.api.get_node(NODE) is not None
    assert said(world, "node removed") == []
    world.claims.make_older(newer.claim_id)
    world.run(15)
    assert world.api.get_node(NODE) is None


def test_its_share_of_the_budget_stays_taken(newer_phase: str) -> None:
    world, _, _ = world_of(1, newer_phase, pool=pool_object(budgetPerHour="3"))
    before = world.committed()
    world.create_pod("more")
    world.run(4)
    assert world.committed() == before
    assert world.claim("more").phase is Phase.PENDING
    assert len(world.billed()) == 1


def test_the_node_pool_shows_what_it_holds() -> None:
    world, _, _ = world_of(2, "Hibernating")
    world.run(1)
    pool = world.api.get_node_pool("pool")
    assert pool is not None
    assert Decimal(pool["status"]["committedPerHour"]) == world.committed() > 0


def test_a_gated_pod_of_such_a_claim_keeps_no_other_from_being_announced(newer_phase: str) -> None:
    world = World(pool=pool_object(maxPricePerHour="0.01"))
    world.create_pod("a")
    world.pump()
    take_events_like_a_handler(world)
    world.claims.make_newer(world.claim("a").claim_id, newer_phase)
    world.create_pod("b", announce=False)
    world.create_pod("c", schedulingGates=[])
    world.run(2)
    assert world.claim("b").reason
    assert said(world, "sweep failed") == []


def test_an_ungated_pod_of_such_a_claim_is_not_told_that_it_has_none(newer_phase: str) -> None:
    world, _, newer = world_of(1, newer_phase)
    world.run(2)
    warned = [line["claim_id"] for line in said(world, "pod warned")]
    assert newer.claim_id not in warned
    assert said(world, "sweep failed") == []


def test_a_weighted_placement_and_a_changed_pool_go_on(newer_phase: str) -> None:
    providers = [{"name": "simulated", "weight": 1}]
    world = World(pool=pool_object(strategy="Weighted", providers=providers))
    running_pods(world, 1)
    world.claims.make_newer(world.claim("train-0").claim_id, newer_phase)
    world.create_pod("more")
    world.pump()
    assert len(world.billed()) == 2
    assert node_pool_changed(world.services("placement"), CLUSTER, "pool") == 0


def test_a_cluster_that_is_not_configured_any_more_is_missed_for_its_sake(newer_phase: str) -> None:
    world, _, newer = world_of(1, newer_phase)
    world.minute()
    world.clusters = FixedClusters()
    assert missing_clusters(world.services("status_polling")) == {CLUSTER}
    assert said(world, "cluster not configured")[0]["claims"] == [newer.claim_id]


def test_it_is_given_up_by_its_own_release_only() -> None:
    world, _, newer = world_of(1, "Hibernating")
    with pytest.raises(NotAbandonedError, match="newer release"):
        abandon(world.services("operator"), newer.claim_id, "gone")


def test_a_credential_that_it_uses_is_not_taken_back() -> None:
    world = Lending()
    world.put_secret()
    claim = world.start()
    world.claims.make_newer(claim.claim_id)
    for machine in world.provider.console.owned():
        world.provider.console.delete(machine.id)
    world.clock.advance(POLICY.unused_after * 2)
    report = world.retire()
    assert [outcome.reason for outcome in report.of(Kind.DEFERRED)] == ["live workloads use it"]
    assert len(world.objects()) == 1
