"""A machine that is billed above ``maxPricePerHour`` although its list said otherwise: never given to a Pod."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from nebula.domain.claim import Phase
from nebula.domain.instance import Instance
from nebula.providers.base import ProvisionRequest
from nebula.providers.errors import ProviderUnavailableError
from nebula.providers.simulated import Call

from tests.support.placements import events, released
from tests.support.world import World, pool_object, running


def _world(monkeypatch: pytest.MonkeyPatch, cost: str, **spec: Any) -> World:
    """A provider that lists a machine at $2.00 and bills an on-demand one at ``cost``."""
    world = World(pool=pool_object(**spec))
    provision = world.simulated.provision

    def dearer(request: ProvisionRequest) -> Instance:
        made = provision(request)
        machine = next(one for one in world.simulated.console.living() if one.id == made.id)
        if request.candidate.capacity_type == "OnDemand":
            machine.rate = Decimal(cost)
            machine.changed()
        return made.model_copy(update={"cost_per_hour": machine.rate})

    monkeypatch.setattr(world.simulated, "provision", dearer)
    world.create_pod()
    return world


def test_it_is_given_back_at_once_and_the_pod_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    world = _world(monkeypatch, "4.50", maxPricePerHour="2.50")
    world.pump()
    assert world.billed() == []
    assert world.claim().phase is Phase.WITHDRAWING
    shown = released(world)
    assert shown["reason"] == "PriceAboveMaximum"
    assert "simulated bills $4.50/h for simulated-000001, above maxPricePerHour $2.50/h" in shown["message"]
    assert ("ProvisionRejected", 1) in events(world)
    world.run(3)
    assert world.simulated.script.counts[Call.PROVISION] == 1
    assert (world.claim().phase, world.committed()) == (Phase.PENDING, Decimal(0))
    assert "bills $4.50/h" in released(world)["message"]


def test_the_next_candidate_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    world = _world(monkeypatch, "4.50", maxPricePerHour="2.50", capacityTypes=["OnDemand", "Spot"])
    world.pump()
    world.run(3)
    assert running(world.pod())
    assert [str(attempt.candidate.capacity_type) for attempt in world.claim().attempts] == ["OnDemand", "Spot"]
    assert len(world.billed()) == 1


@pytest.mark.parametrize(("cost", "maximum"), [("2.52", "2.50"), ("4.50", None), ("2.00", "2.00")])
def test_a_bill_within_it_or_off_by_rounding_or_without_it_is_paid(
    cost: str, maximum: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = _world(monkeypatch, cost, **({} if maximum is None else {"maxPricePerHour": maximum}))
    world.pump()
    world.tick()
    assert running(world.pod())


def test_one_whose_answer_was_lost_and_that_is_found_at_once_is_given_back_too(monkeypatch: pytest.MonkeyPatch) -> None:
    world = _world(monkeypatch, "4.50", maxPricePerHour="2.50")
    provision = world.simulated.provision

    def lost(request: ProvisionRequest) -> Instance:
        provision(request)
        raise ProviderUnavailableError("cut off")

    monkeypatch.setattr(world.simulated, "provision", lost)
    world.pump()
    assert (world.billed(), world.claim().phase) == ([], Phase.WITHDRAWING)
