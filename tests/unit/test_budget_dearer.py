"""A budget holds against what the provider bills, not only against what its price list said."""

from __future__ import annotations

from decimal import Decimal

from nebula.domain.claim import AttemptOutcome, Phase

from tests.support.claims import attempt, placed, terminated
from tests.support.world import World, pool_object

HIGH = Decimal("4.50")


def _dearer(world: World) -> None:
    """From now on the provider bills every machine at a higher rate than its list says."""
    for machine in world.simulated.console.owned():
        machine.rate = HIGH
        machine.changed()


def test_what_is_billed_above_the_reserve_takes_room_from_the_budget() -> None:
    world = World(pool=pool_object(budgetPerHour="6"))
    world.create_pod("one")
    world.pump()
    world.run(1)
    assert world.committed() == Decimal(2)
    _dearer(world)
    world.run(2)
    assert world.committed() == HIGH
    world.create_pod("two")
    world.pump()
    assert (world.claim("two").phase, world.claim("two").reason) == (Phase.PENDING, "budget_exhausted")
    world.delete_pod("one")
    world.pump()
    world.run(3)
    assert world.claim("two").phase is Phase.RELEASED
    assert world.committed() == Decimal(2), "the counter gives back what it took"


def test_a_lower_bill_frees_nothing_and_an_attempt_that_is_gone_holds_nothing() -> None:
    claim = placed("train", attempts=(attempt(outcome=AttemptOutcome.CREATED, instance_id="i-1"),))
    claim = claim.model_copy(update={"phase": Phase.RELEASED})
    reserve = claim.attempts[-1].candidate.reserve_per_hour

    def held(cost: str) -> Decimal:
        seen = claim.observation.model_copy(update={"cost_per_hour": Decimal(cost)})
        return claim.model_copy(update={"observation": seen}).committed_per_hour

    assert held("0") == held(str(reserve / 2)) == reserve
    assert held(str(reserve + 1)) == reserve + 1
    assert terminated(claim).committed_per_hour == 0
