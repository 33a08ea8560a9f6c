"""Many Pods that were placed on what turns out to be refused: the first to ask learns it for all."""

from __future__ import annotations

from datetime import timedelta

import pytest
from nebula.domain.candidate import CapacityType
from nebula.domain.claim import Phase
from nebula.lifecycle.transitions import MAX_CHAINED_REJECTIONS
from nebula.providers.base import ProvisionRequest
from nebula.providers.errors import (
    AuthenticationError,
    InsufficientBalanceError,
    NoCapacityError,
    ProviderError,
    UnsupportedAcceleratorError,
)
from nebula.providers.simulated import Call

from tests.support.placements import placed_only, released
from tests.support.placing import block
from tests.support.world import MINUTE, World, pool_object

COUNT = 12
NAMES = [f"train-{number}" for number in range(COUNT)]


def _all_placed(world: World) -> None:
    """Pods that are placed before anything is asked for any of them."""
    for name in NAMES:
        world.create_pod(name)
    for event in list(world.collect()):
        world.queue.remove(event)
        world.deliver(event)
    assert {world.claim(name).phase for name in NAMES} == {Phase.PLACED}


@pytest.mark.parametrize(
    "error",
    [
        NoCapacityError("none left"),
        UnsupportedAcceleratorError("not sold"),
        AuthenticationError("bad key"),
        InsufficientBalanceError("no money"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_one_refusal_is_enough_for_all_that_were_placed_there(error: ProviderError) -> None:
    world = World()
    _all_placed(world)
    world.simulated.script.fail(Call.PROVISION, error, times=1000)
    world.pump()
    assert world.simulated.script.counts[Call.PROVISION] == 1
    for name in NAMES:
        claim = world.claim(name)
        assert (claim.phase, claim.reason, claim.exclusions) == (Phase.PENDING, "blocked", ())
        assert released(world, name)["message"].startswith("blocked: none of 1 candidates")
    assert world.committed() == 0


def _spot(asked: object) -> bool:
    return isinstance(asked, ProvisionRequest) and asked.candidate.capacity_type is CapacityType.SPOT


def test_they_go_on_elsewhere_at_once() -> None:
    world = World(pool=pool_object("simulated", capacityTypes=["Spot", "OnDemand"]))
    _all_placed(world)
    refused = NoCapacityError("no spot left")
    world.simulated.script.fail(Call.PROVISION, refused, times=1000, matches=_spot)
    world.pump()
    assert {world.claim(name).phase for name in NAMES} == {Phase.RELEASED}
    assert world.simulated.script.counts[Call.PROVISION] == COUNT + 1


def test_a_block_that_is_over_or_elsewhere_keeps_nobody() -> None:
    world = World()
    _all_placed(world)
    world.simulated.script.fail(Call.PROVISION, NoCapacityError("none left"))
    world.deliver(next(event for event in world.collect() if event["detail-type"] == "Claim Placed"))
    world.clock.advance(timedelta(seconds=31))
    world.pump()
    assert sum(world.claim(name).phase is Phase.RELEASED for name in NAMES) >= COUNT - 1


@pytest.mark.parametrize("rejections", [0, MAX_CHAINED_REJECTIONS - 1])
def test_a_pod_that_is_passed_over_is_told_why(rejections: int) -> None:
    world = World()
    placed_only(world)
    last = world.claim()
    world.claims.save(last, last.model_copy(update={"rejections": rejections}))
    world.blocks.put(block("simulated", created_at=world.clock.now(), expires_at=world.clock.now() + MINUTE))
    world.deliver(world.collect().pop(0))
    assert [event["detail-type"] for event in world.collect()] == ["Provision Rejected"][: rejections == 0]
    assert released(world)["reason"] == "NoCapacity"
    assert "from simulated, which has refused this to another Pod meanwhile" in released(world)["message"]
