"""How long each stage may take before it is given up (``spec.failover`` of the NodePool)."""

from __future__ import annotations

from datetime import datetime

from nebula.domain.claim import Claim, Phase
from nebula.domain.instance import InstanceState


def reserve_deadline_passed(claim: Claim, now: datetime, *, queues: bool) -> bool:
    """A provider that queues accepted the claim but gave no machine within ``reserveDeadline``."""
    waiting = claim.phase is Phase.PROVISIONED and claim.observation.state is InstanceState.PENDING
    return queues and waiting and now - claim.phase_since > claim.failover.reserve_deadline


def release_deadline_passed(claim: Claim, now: datetime, *, queues: bool) -> bool:
    """An instance that could be used did not get its Pod within ``releaseDeadline``."""
    if claim.phase not in (Phase.PROVISIONED, Phase.RELEASING):
        return False
    usable_since = claim.observation.running_since if queues else claim.attempts[-1].started_at
    return usable_since is not None and now - usable_since > claim.failover.release_deadline


def ready_deadline_passed(claim: Claim, now: datetime) -> bool:
    """A released Pod's instance ran, and has been neither running nor ended for longer than ``startDeadline``."""
    since = claim.observation.unready_since
    return claim.phase is Phase.RELEASED and since is not None and now - since > claim.failover.start_deadline


def start_deadline_passed(claim: Claim, now: datetime) -> bool:
    """A released Pod's instance was never seen running within ``startDeadline``."""
    if claim.phase is not Phase.RELEASED or claim.released_at is None or claim.observation.running_since is not None:
        return False
    return now - claim.released_at > claim.failover.start_deadline
