"""How long each stage may take before it is given up (``spec.failover`` of the NodePool)."""

from __future__ import annotations

from datetime import datetime, timedelta

from nebula.domain.claim import Claim, Phase
from nebula.domain.instance import InstanceState

#: What a phase may take beyond the NodePool's own deadline before somebody should look: a lost event and a few ticks.
SLACK = timedelta(minutes=5)
#: For so long after it was sent a patch can still land: a call of ours at its longest, and what an API server takes for
#: one (``--request-timeout``, a minute by default:
#: https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/), rounded up.
LANDS_WITHIN = timedelta(minutes=2)
#: A buying or an ending that takes longer than this is stuck at the provider or the cluster.
STUCK_AFTER = timedelta(minutes=15)
#: The longest planned rest of a claim without a place is an hour (``assessment.LONGEST_PAUSE``); each return
#: writes a decision.
UNDECIDED_AFTER = timedelta(hours=1) + STUCK_AFTER
_STUCK = frozenset({Phase.PLACED, Phase.PROVISIONING, Phase.WITHDRAWING, Phase.TERMINATING})


def reserve_deadline_passed(claim: Claim, now: datetime, *, queues: bool) -> bool:
    """A provider that queues accepted the claim but gave no machine within ``reserveDeadline``."""
    waiting = claim.phase is Phase.PROVISIONED and claim.observation.state is InstanceState.PENDING
    return queues and waiting and now - claim.phase_since > claim.failover.reserve_deadline


def release_deadline_passed(claim: Claim, now: datetime, *, queues: bool) -> bool:
    """An instance that could be used did not get its Pod within ``releaseDeadline``.

    Counted from when it was known to exist: one that is found long after a create without an answer has its time too.
    """
    if claim.phase not in (Phase.PROVISIONED, Phase.RELEASING):
        return False
    usable_since = claim.observation.running_since if queues else claim.phase_since
    return usable_since is not None and now - usable_since > claim.failover.release_deadline


def release_given_up(claim: Claim, now: datetime) -> bool:
    """Whether no release patch is sent any more: the claim has been Releasing for longer than ``releaseDeadline``."""
    return claim.phase is Phase.RELEASING and now - claim.phase_since > claim.failover.release_deadline


def release_settled(claim: Claim, now: datetime) -> bool:
    """Whether every release patch has landed or never will, so that from ``now`` on a read tells which."""
    return release_given_up(claim, now - LANDS_WITHIN)


def ready_deadline_passed(claim: Claim, now: datetime) -> bool:
    """A released Pod's instance ran, and has been neither running nor ended for longer than ``startDeadline``."""
    since = claim.observation.unready_since
    return claim.phase is Phase.RELEASED and since is not None and now - since > claim.failover.start_deadline


def start_deadline_passed(claim: Claim, now: datetime) -> bool:
    """A released Pod's instance was never seen running within ``startDeadline``."""
    if claim.phase is not Phase.RELEASED or claim.released_at is None or claim.observation.running_since is not None:
        return False
    return now - claim.released_at > claim.failover.start_deadline


def overdue(claim: Claim, now: datetime) -> bool:
    """Whether a claim has been in its phase for longer than anything planned explains: a person should look.

    Measured by the phase, not by ``next_action_at``: announcing a claim moves that ahead, whether or not anybody
    acts on it. A claim that waits for its Pod or NodePool to change (no ``next_action_at``) is not late.
    """
    since, failover = now - claim.phase_since, claim.failover
    if claim.phase in _STUCK:
        return since > STUCK_AFTER
    if claim.phase is Phase.PENDING:
        return claim.next_action_at is not None and now - claim.updated_at > UNDECIDED_AFTER
    if claim.phase is Phase.PROVISIONED:
        return since > failover.reserve_deadline + failover.release_deadline + SLACK
    if claim.phase is Phase.RELEASING:
        return since > failover.release_deadline + SLACK
    return _starts_late(claim, now)


def _starts_late(claim: Claim, now: datetime) -> bool:
    """A released Pod past its deadline that the loop has not ended."""
    seen = claim.observation
    waiting = claim.phase is Phase.RELEASED and seen.running_since is None
    begun = claim.released_at if waiting else seen.unready_since
    return begun is not None and now - begun > claim.failover.start_deadline + SLACK
