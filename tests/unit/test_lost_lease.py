"""A create that comes back after its lease was lost: nothing is kept twice, and no fault of the give-back rises."""

from __future__ import annotations

from datetime import timedelta

import pytest
from nebula.domain.claim import Phase
from nebula.providers.errors import ProviderUnavailableError
from nebula.providers.simulated import Call

from tests.support.world import World


@pytest.mark.parametrize("give_back_fails", [False, True])
def test_the_extra_instance_is_ended_at_once_or_by_the_sweep(give_back_fails: bool) -> None:
    world = World()

    def meanwhile(call: Call, _subject: object) -> None:
        if call is not Call.PROVISION:
            return
        world.simulated.script.before_each(None)
        world.clock.advance(timedelta(minutes=3))
        for _ in range(4):
            world.tick()
        assert world.claim().phase is Phase.RELEASED
        if give_back_fails:
            world.simulated.script.fail(Call.TERMINATE, ProviderUnavailableError("gateway timeout"))

    world.simulated.script.before_each(meanwhile)
    world.create_pod()
    world.pump()
    kept = world.claim().instance_id
    assert kept is not None
    assert len(world.billed()) == (2 if give_back_fails else 1)
    world.run(2)
    assert world.billed() == [kept]
    assert world.claim().phase is Phase.RELEASED
