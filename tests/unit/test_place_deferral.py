"""Deferral as a workflow: what the claim keeps, what the Pod shows, and what wakes it again."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from nebula.domain.claim import Claim, Phase
from nebula.workflows.place import node_pool_changed, place_claim
from nebula.workflows.placing import FORGIVE_AFTER

from local.kubernetes.resources import NODE_POOLS
from tests.support.placements import block_everything, events, place, released
from tests.support.world import CLUSTER, World, pool_object

SECOND = timedelta(seconds=1)


def blocked() -> tuple[World, Claim]:
    """A Pod that waits because every candidate is blocked."""
    world = World()
    world.create_pod(announce=False)
    block_everything(world)
    claim = place(world)
    assert claim is not None
    return world, claim


def test_a_deferral_shows_on_the_pod_once_and_changes_when_the_reason_does() -> None:
    world, claim = blocked()
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
    world, _ = blocked()
    writes = world.claims.writes
    place(world)
    assert world.claims.writes == writes


def test_a_due_claim_is_placed_when_the_block_has_expired() -> None:
    world, claim = blocked()
    world.clock.advance(timedelta(minutes=2))
    again = place_claim(world.services("placement"), claim.claim_id)
    assert again is not None
    assert again.phase is Phase.PLACED


@pytest.mark.parametrize(("due", "kept"), [(True, 0), (False, 3)])
def test_a_claim_that_comes_through_due_has_left_its_chain(due: bool, kept: int) -> None:
    world, claim = blocked()
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
    world, claim = blocked()
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
    assert forgiven.next_action_at is not None
    assert forgiven.next_action_at <= world.clock.now() + timedelta(seconds=30), "not after the longest backoff"
    again = place_claim(world.services("placement"), claim.claim_id)
    assert again is not None
    assert again.phase is Phase.PLACED


def test_a_change_of_the_pool_s_status_wakes_nobody() -> None:
    world, _ = blocked()
    world.api.patch_node_pool_status("pool", {"status": {"committedPerHour": "1"}})
    writes = world.claims.writes
    assert node_pool_changed(world.services("placement"), CLUSTER, "pool") == 0
    assert world.claims.writes == writes


def test_the_spec_that_was_decided_on_is_remembered() -> None:
    world = World()
    world.create_pod(announce=False)
    claim = place(world)
    pool = world.api.get_node_pool("pool")
    assert claim is not None
    assert pool is not None
    assert claim.node_pool_revision == f"{pool['metadata']['uid']}/{pool['metadata']['generation']}"
