"""Placement as a workflow: what it reads, what it writes, and what it leaves alone."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from nebula.clock import ManualClock
from nebula.domain.claim import Claim, Phase, claim_id_for
from nebula.domain.nodepool import Failover
from nebula.events.details import DetailType
from nebula.providers.errors import NoCapacityError
from nebula.providers.simulated import SimulatedProvider
from nebula.providers.simulated.script import Call
from nebula.workflows.place import node_pool_changed, place_claim, place_pod
from nebula.workflows.placing import FORGIVE_AFTER, REDRIVE

from local.kubernetes.resources import NODE_POOLS
from tests.support.placing import block
from tests.support.world import CLUSTER, START, World, pool_object

SECOND = timedelta(seconds=1)


def place(world: World, name: str = "train") -> Claim | None:
    pod = world.pod(name)
    assert pod is not None
    return place_pod(world.services("placement"), CLUSTER, "default", name, pod["metadata"]["uid"])


def released(world: World, name: str = "train") -> dict[str, Any]:
    pod = world.pod(name)
    assert pod is not None
    return next(c for c in pod["status"]["conditions"] if c["type"] == "nebula.inftyai.com/Released")


def events(world: World) -> list[tuple[str, int]]:
    _, _, body = world.emulator.handle("GET", "/api/v1/namespaces/default/events", {}, {}, b"")
    assert isinstance(body, bytes)
    return sorted((event["reason"], event["count"]) for event in json.loads(body)["items"])


def block_everything(world: World, seconds: int = 40) -> None:
    now = world.clock.now()
    world.blocks.put(block("simulated", created_at=now, expires_at=now + timedelta(seconds=seconds)))


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


def test_a_deferral_shows_on_the_pod_once_and_changes_when_the_reason_does() -> None:
    world = World()
    world.create_pod(announce=False)
    block_everything(world)
    claim = place(world)
    assert claim is not None
    assert (claim.phase, claim.reason) == (Phase.PENDING, "blocked")
    assert claim.decision == (
        "simulated H100:1/cpu=0/mem=0Gi/disk=default OnDemand any $2.00/h: "
        "blocked until 2026-11-01T12:00:40Z: NoCapacity [price is 304 days old]",
    )
    condition = released(world)
    assert (condition["status"], condition["reason"]) == ("False", "Deferred")
    assert condition["message"].startswith("blocked: none of 1 candidates for H100:1")
    version = world.pod()["metadata"]["resourceVersion"]  # type: ignore[index]
    assert claim.next_action_at is not None
    assert timedelta(seconds=40) <= claim.next_action_at - world.clock.now() < timedelta(seconds=70)

    world.clock.advance(SECOND)
    place_claim(world.services("placement"), claim.claim_id)
    assert world.pod()["metadata"]["resourceVersion"] == version, "nothing new, nothing written"  # type: ignore[index]
    assert events(world) == [("PlacementDeferred", 1)]

    world.providers.keys.clear()
    place_claim(world.services("placement"), claim.claim_id)
    assert released(world)["message"].startswith("provider_unconfigured: ")
    assert events(world) == [("PlacementDeferred", 1), ("PlacementDeferred", 1)]


def test_our_own_status_write_comes_back_as_a_change_and_costs_nothing() -> None:
    world = World()
    world.create_pod(announce=False)
    block_everything(world)
    place(world)
    writes = world.claims.writes
    place(world)
    assert world.claims.writes == writes


def test_a_due_claim_is_placed_when_the_block_has_expired() -> None:
    world = World()
    world.create_pod(announce=False)
    block_everything(world)
    claim = place(world)
    assert claim is not None
    world.clock.advance(timedelta(minutes=2))
    again = place_claim(world.services("placement"), claim.claim_id)
    assert again is not None
    assert again.phase is Phase.PLACED


@pytest.mark.parametrize(("due", "kept"), [(True, 0), (False, 3)])
def test_a_claim_that_comes_through_due_has_left_its_chain(due: bool, kept: int) -> None:
    world = World()
    world.create_pod(announce=False)
    block_everything(world)
    claim = place(world)
    assert claim is not None
    chained = world.claims.save(claim, claim.model_copy(update={"rejections": 3}))
    again = place_claim(world.services("placement"), chained.claim_id, due=due)
    assert again is not None
    assert again.rejections == kept


@pytest.mark.parametrize(
    ("pool", "reason", "waits"),
    [
        (None, "NodePoolNotFound", True),
        (pool_object(strategy="Cheapest"), "InvalidNodePool", True),
    ],
)
def test_a_missing_or_bad_node_pool_defers_and_heals(pool: Any, reason: str, waits: bool) -> None:
    world = World()
    world.emulator.handle("DELETE", "/apis/nebula.inftyai.com/v1alpha1/nodepools/pool", {}, {}, b"")
    if pool is not None:
        world.emulator.create(NODE_POOLS, "", pool)
    world.create_pod(announce=False)
    claim = place(world)
    assert claim is not None
    assert (claim.phase, claim.reason) == (Phase.PENDING, reason)
    assert (claim.next_action_at is not None) is waits
    if pool is not None:
        world.emulator.handle("DELETE", "/apis/nebula.inftyai.com/v1alpha1/nodepools/pool", {}, {}, b"")
    world.emulator.create(NODE_POOLS, "", pool_object())
    assert node_pool_changed(world.services("placement"), CLUSTER, "pool") == 1
    assert world.claim().phase is Phase.PLACED


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"labels": {"nebula.inftyai.com/nodepool": ""}}, "NodePoolNotNamed"),
        ({"labels": {"nebula.inftyai.com/accelerator-type": ""}}, "AcceleratorTypeMissing"),
        ({"hostNetwork": True}, "InvalidWorkload"),
    ],
)
def test_a_pod_that_must_change_waits_for_a_change_and_for_nothing_else(changes: dict[str, Any], reason: str) -> None:
    world = World()
    world.create_pod(announce=False, **changes)
    claim = place(world)
    assert claim is not None
    assert (claim.phase, claim.reason, claim.next_action_at) == (Phase.PENDING, reason, None)
    assert released(world)["message"].startswith(f"{reason}: ")
    assert world.api.get_node("nebula-simulated") is None, "nothing is made for a Pod that cannot be placed"


def test_a_corrected_label_heals_an_invalid_pod() -> None:
    world = World()
    world.create_pod(announce=False, labels={"nebula.inftyai.com/accelerator-type": ""})
    place(world)
    world.api.patch_pod("default", "train", {"metadata": {"labels": {"nebula.inftyai.com/accelerator-type": "h100"}}})
    claim = place(world)
    assert claim is not None
    assert claim.phase is Phase.PLACED
    assert claim.shape.accelerator == "H100"


def test_budget_is_narrowed_to_what_is_left_and_the_rest_waits_for_it() -> None:
    world = World(pool=pool_object(budgetPerHour="3"))
    for name in ("one", "two"):
        world.create_pod(name, announce=False)
        place(world, name)
    assert world.claim("one").phase is Phase.PLACED
    waiting = world.claim("two")
    assert (waiting.phase, waiting.reason) == (Phase.PENDING, "budget_exhausted")
    assert waiting.wanted_per_hour == Decimal("2.00")
    assert world.committed() == Decimal("2.00")


def test_an_exclusion_is_forgiven_after_a_long_wait() -> None:
    world = World()
    world.create_pod(announce=False)
    block_everything(world)
    claim = place(world)
    assert claim is not None
    key = "simulated/H100:1/cpu=0/mem=0Gi/disk=default/OnDemand/any"
    world.claims.save(claim, claim.model_copy(update={"exclusions": (key,)}))
    world.clock.advance(timedelta(minutes=1))
    still = place_claim(world.services("placement"), claim.claim_id)
    assert still is not None
    assert (still.reason, still.exclusions) == ("excluded", (key,))
    world.clock.advance(FORGIVE_AFTER)
    forgiven = place_claim(world.services("placement"), claim.claim_id)
    assert forgiven is not None
    assert forgiven.exclusions == ()
    again = place_claim(world.services("placement"), claim.claim_id)
    assert again is not None
    assert again.phase is Phase.PLACED


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
