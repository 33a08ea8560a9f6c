"""Creates whose answer comes late or never: what was made is used, and what makes nothing is given up."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from nebula.domain.claim import Claim, Observation, Phase
from nebula.domain.nodepool import Failover
from nebula.kubernetes.api import ClusterUnavailableError
from nebula.lifecycle.deadlines import release_deadline_passed
from nebula.lifecycle.transitions import MAX_UNKNOWN_OUTCOMES
from nebula.providers.errors import ProviderUnavailableError
from nebula.providers.simulated import Call

from tests.support.claims import NOW, SECOND, provisioned
from tests.support.placements import released
from tests.support.world import World, running, until_true

RELEASE = Failover().release_deadline
#: Minutes: what a claim rests that its only candidate failed (ten), the longest back-off after that, and some ticks.
FORGIVEN = 20


@pytest.mark.parametrize("phase", [Phase.PROVISIONED, Phase.RELEASING])
def test_the_release_deadline_counts_from_when_the_instance_is_known(phase: Phase) -> None:
    claim: Claim = provisioned(phase=phase, phase_since=NOW + timedelta(minutes=30), failover=Failover())
    assert claim.attempts[-1].started_at <= NOW
    assert not release_deadline_passed(claim, claim.phase_since + RELEASE, queues=False)
    assert release_deadline_passed(claim, claim.phase_since + RELEASE + SECOND, queues=False)


def test_where_a_provider_queues_it_counts_from_when_the_instance_runs() -> None:
    claim: Claim = provisioned(phase=Phase.PROVISIONED, phase_since=NOW, failover=Failover())
    assert not release_deadline_passed(claim, NOW + timedelta(days=1), queues=True)
    runs = claim.model_copy(update={"observation": Observation(running_since=NOW)})
    assert release_deadline_passed(runs, NOW + RELEASE + SECOND, queues=True)


def test_an_instance_that_is_found_after_a_long_silence_still_gets_its_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    script = world.simulated.script
    script.fail(Call.PROVISION, ProviderUnavailableError("cut off"), after=True)
    script.fail(Call.FIND, ProviderUnavailableError("silent"), times=10_000)
    world.create_pod()
    world.pump()
    world.run(int(RELEASE / timedelta(minutes=1)) + 2)
    made = world.billed()
    assert (world.claim().phase, len(made)) == (Phase.PROVISIONING, 1)
    script.heal()
    patch, answers = world.api.patch_pod, [ClusterUnavailableError("no answer")]

    def late(*arguments: Any) -> Any:
        if answers:
            raise answers.pop()
        return patch(*arguments)

    monkeypatch.setattr(world.api, "patch_pod", late)
    world.run(3)
    assert not answers
    assert (world.claim().phase, world.billed()) == (Phase.RELEASED, made)


def test_creates_that_their_caller_does_not_survive_are_counted_told_and_given_up() -> None:
    world = World()
    script = world.simulated.script
    script.fail(Call.PROVISION, MemoryError("stopped in the middle"), times=10_000)
    world.create_pod()
    for _ in range(4):
        _survive(world)
    assert script.counts[Call.PROVISION] == 2
    assert released(world)["reason"] == "NeverMade"
    for _ in range(6):
        _survive(world)
    assert script.counts[Call.PROVISION] == MAX_UNKNOWN_OUTCOMES
    claim = world.claim()
    assert (claim.phase, claim.reason, len(claim.exclusions)) == (Phase.PENDING, "excluded", 1)
    assert "did not answer 3 times; nothing was created" in released(world)["message"]
    script.heal()
    until_true(world, lambda: world.claim().phase is Phase.RELEASED, minutes=FORGIVEN)


def _survive(world: World) -> None:
    """A minute in which whoever dies with a message in hand leaves the message's work undone."""
    world.minute(pump=False)
    while world.collect():
        try:
            world.pump()
        except MemoryError:
            world.queue.pop(0)


def _lost_answer() -> tuple[World, str]:
    """A machine whose create gave no answer and that a first look did not find either."""
    world = World()
    world.simulated.script.fail(Call.PROVISION, ProviderUnavailableError("cut off"), after=True)
    world.simulated.script.fail(Call.FIND, ProviderUnavailableError("silent"))
    world.create_pod()
    world.pump()
    return world, world.billed()[0]


@pytest.mark.parametrize("exits", [True, False])
def test_a_machine_that_is_dead_when_it_is_found_is_given_back_and_its_pod_gets_another(exits: bool) -> None:
    world, first = _lost_answer()
    if exits:
        world.simulated.console.exit(first, None)
    else:
        world.simulated.console.fail(first, "broken")
    until_true(world, lambda: running(world.pod()), minutes=FORGIVEN)
    assert [attempt.number for attempt in world.claim().attempts] == [1, 2]
    assert first not in world.billed()


def test_a_machine_that_ran_to_its_end_before_it_was_found_ends_its_pod_as_it_ended() -> None:
    world, first = _lost_answer()
    world.simulated.console.exit(first, 3)
    world.run(6)
    shown = (world.pod() or {})["status"]
    assert shown["phase"] == "Failed"
    assert shown["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
