"""How long each phase may last before it is called late (``ClaimsOverdue``)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from nebula.domain.claim import Claim, Observation, Phase
from nebula.domain.nodepool import Failover
from nebula.lifecycle.assessment import LONGEST_PAUSE
from nebula.lifecycle.deadlines import SLACK, STUCK_AFTER, UNDECIDED_AFTER, overdue

from tests.support.claims import NOW, SECOND, pending, provisioned
from tests.support.mischief import claims, running_pods
from tests.support.world import World

LIMITS = Failover()
RESERVE, RELEASE, START = LIMITS.reserve_deadline, LIMITS.release_deadline, LIMITS.start_deadline


def _in(phase: Phase, **changes: Any) -> Claim:
    return provisioned(phase=phase, failover=LIMITS, **changes)


@pytest.mark.parametrize(
    ("claim", "limit"),
    [
        (_in(Phase.PLACED, phase_since=NOW), STUCK_AFTER),
        (_in(Phase.PROVISIONING, phase_since=NOW), STUCK_AFTER),
        (_in(Phase.WITHDRAWING, phase_since=NOW), STUCK_AFTER),
        (_in(Phase.TERMINATING, phase_since=NOW), STUCK_AFTER),
        (_in(Phase.PROVISIONED, phase_since=NOW), RESERVE + RELEASE + SLACK),
        (_in(Phase.RELEASING, phase_since=NOW), RELEASE + SLACK),
        (_in(Phase.RELEASED, released_at=NOW), START + SLACK),
        (_in(Phase.RELEASED, observation=Observation(running_since=NOW, unready_since=NOW)), START + SLACK),
        (pending(updated_at=NOW, next_action_at=NOW), UNDECIDED_AFTER),
    ],
    ids=lambda value: str(value.phase) if isinstance(value, Claim) else "",
)
def test_each_phase_has_its_limit(claim: Claim, limit: timedelta) -> None:
    assert not overdue(claim, NOW + limit)
    assert overdue(claim, NOW + limit + SECOND)


@pytest.mark.parametrize(
    "claim",
    [
        pending(updated_at=NOW, next_action_at=None),
        _in(Phase.RELEASED, released_at=NOW, observation=Observation(running_since=NOW)),
        _in(Phase.TERMINATED, phase_since=NOW),
    ],
    ids=["waits for a change", "runs", "over"],
)
def test_these_may_last_for_ever(claim: Claim) -> None:
    assert not overdue(claim, NOW + timedelta(days=30))


def test_no_planned_rest_is_called_late() -> None:
    assert LONGEST_PAUSE < UNDECIDED_AFTER


def test_announcing_a_claim_again_and_again_does_not_hide_that_nobody_acts() -> None:
    world = World()
    running_pods(world, 1)
    world.delete_pod("train-0")
    ends = claims(world)[0]
    world.simulated.break_listing(shown=1)
    for _ in range(17):
        world.minute(pump=False)
        world.publisher.take()
        world.queue.clear()
    claim = world.claims.get(ends.claim_id)
    assert claim is not None
    assert claim.phase is Phase.TERMINATING
    assert claim.next_action_at is not None
    assert claim.next_action_at > world.clock.now() - timedelta(minutes=2)
    assert world.telemetry.total("ClaimsOverdue") >= 1
