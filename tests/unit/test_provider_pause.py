"""A throttle pauses the provider for everyone, and says nothing about any request (design §6, §8)."""

from __future__ import annotations

from datetime import timedelta

from nebula.domain.claim import Phase
from nebula.providers.errors import RateLimitedError
from nebula.providers.simulated import Call

from tests.support.world import World


def test_one_pods_throttle_keeps_every_other_pod_from_asking() -> None:
    world = World()
    for name in ("a", "b", "c"):
        world.create_pod(name)
    throttle = RateLimitedError("slow down", retry_after=timedelta(seconds=40))
    world.simulated.script.fail(Call.PROVISION, throttle)
    world.pump()
    assert world.simulated.script.counts[Call.PROVISION] == 1
    assert {world.claim(name).phase for name in ("a", "b", "c")} <= {Phase.PLACED, Phase.PENDING}

    world.run(3)
    assert {world.claim(name).phase for name in ("a", "b", "c")} == {Phase.RELEASED}
    assert world.simulated.script.counts[Call.PROVISION] == 4
