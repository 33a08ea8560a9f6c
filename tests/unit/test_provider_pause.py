"""A throttle pauses the provider for everyone, and says nothing about any request (design §6, §8)."""

from __future__ import annotations

from datetime import timedelta

from nebula.domain.claim import Phase
from nebula.placement.blocklist import LONGEST_PAUSE
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


def test_a_retry_after_of_a_day_is_believed_no_longer_than_the_providers_pause() -> None:
    world = World()
    world.create_pod("a")
    throttle = RateLimitedError("come back tomorrow", retry_after=timedelta(days=1))
    world.simulated.script.fail(Call.PROVISION, throttle)
    world.pump()
    claim = world.claim("a")
    assert claim.phase is Phase.PLACED
    assert claim.next_action_at == world.clock.now() + LONGEST_PAUSE
    world.run(17)
    assert world.claim("a").phase is Phase.RELEASED
