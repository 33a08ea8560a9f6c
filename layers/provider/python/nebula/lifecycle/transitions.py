"""The moves of a claim, each a pure function from a claim to its next state.

The table ``MOVES`` is the whole state machine; ``move`` refuses anything else. Versions are the
store's business: it raises the version when the conditional write succeeds.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from nebula.domain.claim import Attempt, AttemptOutcome, Claim, Observation, Phase, TerminationReason, bounded
from nebula.domain.instance import Instance
from nebula.lifecycle.observation import observed

#: Rejections in one chain of events before the claim goes on through ``due`` (Lambda's loop
#: detection stops a chain at 16 hops; one rejection takes three).
MAX_CHAINED_REJECTIONS = 4
#: Calls in a row with an unknown outcome before the candidate is given up for this claim.
MAX_UNKNOWN_OUTCOMES = 3
#: The reason of a claim whose last create gave no answer.
OUTCOME_UNKNOWN = "OutcomeUnknown"
#: Ended attempts that a claim remembers. A Pod that nobody can serve is tried for days, and a row must
#: stay far below DynamoDB's 400 KB.
KEPT_ATTEMPTS = 20

MOVES: dict[Phase, frozenset[Phase]] = {
    Phase.PENDING: frozenset({Phase.PENDING, Phase.PLACED, Phase.TERMINATING}),
    Phase.PLACED: frozenset({Phase.PLACED, Phase.PENDING, Phase.PROVISIONING, Phase.TERMINATING}),
    Phase.PROVISIONING: frozenset(
        {Phase.PROVISIONING, Phase.PROVISIONED, Phase.PLACED, Phase.PENDING, Phase.TERMINATING}
    ),
    Phase.PROVISIONED: frozenset({Phase.PROVISIONED, Phase.RELEASING, Phase.WITHDRAWING, Phase.TERMINATING}),
    Phase.RELEASING: frozenset({Phase.RELEASING, Phase.RELEASED, Phase.WITHDRAWING, Phase.TERMINATING}),
    Phase.RELEASED: frozenset({Phase.RELEASED, Phase.TERMINATING}),
    Phase.WITHDRAWING: frozenset({Phase.WITHDRAWING, Phase.PENDING, Phase.TERMINATING}),
    Phase.TERMINATING: frozenset({Phase.TERMINATING, Phase.TERMINATED}),
    Phase.TERMINATED: frozenset(),
}

#: While the Pod is gated a claim may end only for these reasons; others withdraw.
GATED_TERMINATIONS = frozenset({TerminationReason.POD_DELETED, TerminationReason.ABANDONED})


class IllegalMoveError(RuntimeError):
    """The state machine does not have this move: a bug of ours, never a provider's doing."""


def move(claim: Claim, phase: Phase, now: datetime, **changes: Any) -> Claim:
    """The claim in ``phase`` with ``changes``; IllegalMoveError when ``MOVES`` has no such move.

    A long message is cut: what a Pod is told of its fields may be as long as the Pod.
    """
    if phase not in MOVES[claim.phase]:
        raise IllegalMoveError(f"{claim.phase} cannot become {phase}")
    if "message" in changes:
        changes["message"] = bounded(changes["message"])
    if phase is not claim.phase:
        changes.setdefault("phase_since", now)
    return claim.model_copy(update={"phase": phase, "updated_at": now, **changes})


def with_attempt(claim: Claim, **changes: Any) -> tuple[Attempt, ...]:
    """The attempts with the latest one changed; ValueError before the first."""
    if claim.attempt is None:
        raise ValueError(f"claim {claim.claim_id} has made no attempt")
    return (*claim.attempts[:-1], claim.attempt.model_copy(update=changes))


def take_lease(
    claim: Claim,
    now: datetime,
    lease: timedelta,
    *,
    pod_fields_hash: str,
    credential_key: str | None,
    account: str = "",
) -> Claim:
    """Begin attempt n+1: in the ledger before the provider is called, due again when the lease ends."""
    if claim.candidate is None:
        raise IllegalMoveError("a claim without a candidate cannot be provisioned")
    if claim.unconfirmed:
        raise IllegalMoveError("an earlier attempt is not confirmed gone")
    until = now + lease
    number = claim.attempts[-1].number + 1 if claim.attempts else 1
    attempt = Attempt(
        number=number, candidate=claim.candidate, started_at=now, lease_until=until, account=account
    )  # fmt: skip
    return move(
        claim,
        Phase.PROVISIONING,
        now,
        attempts=(*claim.attempts[-KEPT_ATTEMPTS:], attempt),
        pod_fields_hash=pod_fields_hash,
        credential_key=credential_key,
        next_action_at=until,
        observation=Observation(),
        reason="Provisioning",
        message=f"creating an instance on {claim.candidate.provider}",
    )


def created(claim: Claim, instance: Instance, now: datetime, *, keep_lease: bool) -> Claim:
    """The attempt made (or was found to have made) ``instance``.

    ``keep_lease`` is for a caller that goes on to release the Pod; otherwise the lease ends here and
    the claim is due at its reserve deadline.
    """
    attempt = claim.attempt
    asked_at = None if attempt is None else attempt.started_at
    until = attempt.lease_until if attempt is not None and keep_lease else now
    return move(
        claim,
        Phase.PROVISIONED,
        now,
        attempts=with_attempt(
            claim,
            outcome=AttemptOutcome.CREATED,
            instance_id=instance.id,
            scope=instance.scope,
            failures=instance.refused_types,
            lease_until=until,
            absent_since=None,
        ),
        observation=observed(claim.observation, instance, now, not_before=asked_at),
        unknown_outcomes=0,
        next_action_at=max(until, now) if keep_lease else now + claim.failover.reserve_deadline,
        reason="Provisioned",
        message=f"instance {instance.id} was created",
    )


def back_to_pending(
    claim: Claim,
    now: datetime,
    *,
    reason: str,
    message: str,
    next_action_at: datetime | None,
    outcome: AttemptOutcome | None = None,
    failures: tuple[str, ...] = (),
    exclude: bool = False,
    rejected: bool = False,
) -> Claim:
    """Give the current candidate up; ``outcome`` is what became of the attempt, None if none was made.

    ``exclude`` keeps this claim off the candidate for good; ``rejected`` counts in the event chain. Nothing of it
    exists any more, so it uses no registry credential: one that was rotated must not stay lent for a Pod that waits.
    """
    changes: dict[str, Any] = {}
    if outcome is not None:
        changes["attempts"] = with_attempt(claim, outcome=outcome, failures=failures, detail=bounded(message))
    if exclude and claim.candidate is not None:
        changes["exclusions"] = tuple(dict.fromkeys((*claim.exclusions, claim.candidate.key)))
    if rejected:
        changes["rejections"] = claim.rejections + 1
    return move(
        claim,
        Phase.PENDING,
        now,
        candidate=None,
        credential_key=None,
        next_action_at=next_action_at,
        reason=reason,
        message=message,
        unknown_outcomes=0,
        **changes,
    )


def throttled(claim: Claim, now: datetime, *, until: datetime, message: str) -> Claim:
    """A throttle says nothing about the request: the same candidate again at ``until``."""
    return move(
        claim,
        Phase.PLACED,
        now,
        attempts=with_attempt(claim, outcome=AttemptOutcome.REFUSED, detail=bounded(message)),
        next_action_at=until,
        reason="RateLimited",
        message=message,
    )


def outcome_unknown(claim: Claim, now: datetime, *, message: str) -> Claim:
    """The call ended without an answer: it may exist. Nothing more happens before the lease ends."""
    return move(
        claim, Phase.PROVISIONING, now, unknown_outcomes=claim.unknown_outcomes + 1, reason=OUTCOME_UNKNOWN,
        message=message,
    )  # fmt: skip


def absent(claim: Claim, now: datetime, *, began_at: datetime, again_at: datetime) -> Claim:
    """A complete listing that began at ``began_at`` lacks the attempt: look once more at ``again_at``."""
    return move(
        claim, claim.phase, now, attempts=with_attempt(claim, absent_since=began_at), next_action_at=again_at
    )  # fmt: skip


def releasing(claim: Claim, now: datetime, *, again_at: datetime) -> Claim:
    """Intent to release, in the ledger before the Pod is patched."""
    return move(claim, Phase.RELEASING, now, next_action_at=again_at, reason="Releasing", message="releasing the Pod")


def released(claim: Claim, now: datetime) -> Claim:
    """The Pod's gate is gone; the status loop watches the instance from here."""
    return move(
        claim,
        Phase.RELEASED,
        now,
        attempts=with_attempt(claim, lease_until=min(now, claim.attempts[-1].lease_until)),
        released_at=now,
        next_action_at=None,
        rejections=0,
        reason="Released",
        message=f"runs on {claim.attempts[-1].candidate.provider} as {claim.instance_id}",
    )


def withdrawing(claim: Claim, now: datetime, *, reason: str, message: str, exclude: bool) -> Claim:
    """Take an instance back while the Pod is gated; ``exclude`` keeps this claim off its candidate."""
    exclusions = claim.exclusions
    if exclude and claim.candidate is not None:
        exclusions = tuple(dict.fromkeys((*exclusions, claim.candidate.key)))
    return move(
        claim, Phase.WITHDRAWING, now, next_action_at=now, reason=reason, message=message, exclusions=exclusions
    )  # fmt: skip


def terminating(claim: Claim, now: datetime, *, why: TerminationReason, message: str) -> Claim:
    """End the claim: delete intent beats every other step.

    IllegalMoveError when the Pod is still gated and ``why`` is not one of ``GATED_TERMINATIONS``.
    """
    if claim.phase is not Phase.RELEASED and why not in GATED_TERMINATIONS:
        raise IllegalMoveError(f"{claim.phase} withdraws; it does not end for {why}")
    return move(
        claim, Phase.TERMINATING, now, next_action_at=now, termination_reason=why, reason=str(why), message=message
    )  # fmt: skip


def abandoned(claim: Claim, now: datetime, *, message: str) -> Claim:
    """End the claim on an operator's word: what may still be billed counts as gone, unconfirmed."""
    attempts = tuple(
        a if a.confirmed_gone else a.model_copy(update={"outcome": AttemptOutcome.ABANDONED, "detail": message})
        for a in claim.attempts
    )
    ending = terminating(claim, now, why=TerminationReason.ABANDONED, message=message)
    return ending.model_copy(update={"attempts": attempts})


def reopenable(claim: Claim) -> bool:
    """Whether a claim that is over may begin anew, should its Pod wait for us after all.

    Only one that ended because its Pod was said to be gone or not ours (the opt-in label was taken away and put
    back, an API server forgot and remembered), and that never released it: nothing ever ran under it, and a gate
    that is gone cannot be put back.
    """
    over = claim.phase is Phase.TERMINATED and claim.termination_reason is TerminationReason.POD_DELETED
    return over and claim.released_at is None


def reopened(claim: Claim, now: datetime) -> Claim:
    """A claim that is over, waiting for a place again; its attempts stay, so that their numbers go on.

    Not in ``MOVES``: nothing but a Pod that demonstrably waits leads here. IllegalMoveError where it must not.
    """
    if not reopenable(claim):
        raise IllegalMoveError(f"{claim.phase} for {claim.termination_reason} does not begin anew")
    begun = {
        "phase": Phase.PENDING,
        "phase_since": now,
        "updated_at": now,
        "next_action_at": now,
        "termination_reason": None,
        "candidate": None,
        "credential_key": None,
        "reason": "Reopened",
        "message": "the Pod waits for an instance again",
        "exclusions": (),
        "rejections": 0,
        "unknown_outcomes": 0,
        "wanted_per_hour": None,
        "observation": Observation(),
        "pod_absent_since": None,
    }
    return claim.model_copy(update=begun)


def terminated(claim: Claim, now: datetime) -> Claim:
    """Nothing of the claim is billed any more and the Pod has its last word. Written last."""
    if claim.unconfirmed:
        raise IllegalMoveError("an attempt is not confirmed gone")
    return move(claim, Phase.TERMINATED, now, next_action_at=None)
