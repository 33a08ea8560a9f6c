"""What one look at a provider means for one claim: the status loop's decisions, pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from nebula.domain.claim import Attempt, AttemptOutcome, Claim, Phase, TerminationReason
from nebula.domain.instance import Instance, InstanceListing, InstanceState
from nebula.lifecycle.deadlines import (
    ready_deadline_passed,
    release_deadline_passed,
    reserve_deadline_passed,
    start_deadline_passed,
)
from nebula.lifecycle.observation import ABSENCE_GAP, absence_counts, absence_proved, is_strange, observed, sighting
from nebula.lifecycle.transitions import back_to_pending, terminating, with_attempt, withdrawing
from nebula.providers.base import Capabilities
from nebula.providers.errors import NoCapacityError, ProviderError

#: Why an instance was taken back although its provider did its part.
RELEASE_TROUBLES = frozenset({"ReleaseRefused", "ReleaseDeadline", "PodChanged"})
FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(hours=1)


@dataclass(frozen=True)
class Assessment:
    """What a claim should become, and what goes with it.

    ``claim`` is the very object passed in when nothing changes. ``confirm`` asks for a ``get`` by id
    before the claim is written: an absence is believed only then. ``ready`` announces a running
    instance. ``failure`` is a provider's failing to be remembered as a block before the claim moves.
    ``finished`` says that nothing is billed any more, so the Pod may have its last word.
    """

    claim: Claim
    confirm: bool = False
    ready: bool = False
    failure: ProviderError | None = None
    finished: bool = False


def assess(
    claim: Claim,
    listing: InstanceListing,
    capabilities: Capabilities,
    installation: str,
    now: datetime,
    *,
    gap: timedelta = ABSENCE_GAP,
) -> Assessment:
    """Judge one claim by one listing of its provider. ``gap`` is how far apart two absences must be to prove a loss."""
    if claim.phase in (Phase.PROVISIONED, Phase.RELEASING, Phase.RELEASED):
        return _held(claim, listing, capabilities, installation, now, gap)
    if claim.phase in (Phase.WITHDRAWING, Phase.TERMINATING):
        return _leaving(claim, listing, capabilities, installation, now)
    return Assessment(claim)


def _held(
    claim: Claim,
    listing: InstanceListing,
    capabilities: Capabilities,
    installation: str,
    now: datetime,
    gap: timedelta,
) -> Assessment:
    attempt = claim.attempts[-1]
    instance = sighting(attempt, listing, installation, claim.claim_id)
    if instance is None:
        if is_strange(attempt, listing, installation, claim.claim_id):
            return Assessment(claim if attempt.strange else _noted(claim, strange=True, absent_since=None))
        return _missing(claim, attempt, listing, capabilities, now, gap)
    observation = observed(claim.observation, instance, now, not_before=attempt.started_at)
    if attempt.absent_since is not None or attempt.strange:
        claim = _noted(claim, absent_since=None, strange=False)
    if observation != claim.observation:
        claim = claim.model_copy(update={"observation": observation, "updated_at": now})
    if claim.phase is Phase.RELEASED:
        return _running(claim, instance, now)
    return _gated(claim, instance, capabilities, now)


def _noted(claim: Claim, **changes: Any) -> Claim:
    return claim.model_copy(update={"attempts": with_attempt(claim, **changes)})


def _missing(
    claim: Claim,
    attempt: Attempt,
    listing: InstanceListing,
    capabilities: Capabilities,
    now: datetime,
    gap: timedelta,
) -> Assessment:
    """An absence is noted at first sight and believed after ``gap``; in doubt both are confirmed by a read."""
    if not absence_counts(attempt, listing, capabilities.visibility_delay):
        return Assessment(claim)
    if not absence_proved(attempt, listing.began_at, gap):
        if attempt.absent_since is not None:
            return Assessment(claim)
        return Assessment(_noted(claim, absent_since=listing.began_at), confirm=gap > ABSENCE_GAP)
    message = f"instance {attempt.instance_id} is gone from {attempt.candidate.provider} without a delete of ours"
    if claim.phase is Phase.RELEASED:
        lost = terminating(claim, now, why=TerminationReason.INSTANCE_LOST, message=message)
    else:
        lost = withdrawing(claim, now, reason="InstanceLost", message=message, exclude=False)
    return Assessment(lost, confirm=True)


def _gated(claim: Claim, instance: Instance, capabilities: Capabilities, now: datetime) -> Assessment:
    """An instance whose Pod still waits: a trouble here withdraws it and the failover goes on."""
    provider = claim.attempts[-1].candidate.provider
    if instance.preempted:
        failure = NoCapacityError(f"{provider} took the instance back")
        taken = withdrawing(claim, now, reason="Preempted", message=str(failure), exclude=False)
        return Assessment(taken, failure=failure)
    if claim.observation.state in (InstanceState.FAILED, InstanceState.EXITED, InstanceState.TERMINATED):
        message = f"instance {instance.id} ended before its Pod was released: {_words(instance)}"
        return Assessment(withdrawing(claim, now, reason="InstanceFailed", message=message, exclude=True))
    if reserve_deadline_passed(claim, now, queues=capabilities.queues):
        failure = NoCapacityError(f"{provider} queued the request for longer than reserveDeadline")
        late = withdrawing(claim, now, reason="ReserveDeadline", message=str(failure), exclude=False)
        return Assessment(late, failure=failure)
    if release_deadline_passed(claim, now, queues=capabilities.queues):
        message = f"the Pod was not released within releaseDeadline: {claim.message}"
        return Assessment(withdrawing(claim, now, reason="ReleaseDeadline", message=message, exclude=False))
    running = claim.observation.state is InstanceState.RUNNING
    return Assessment(claim, ready=running and claim.phase is Phase.PROVISIONED)


def _running(claim: Claim, instance: Instance, now: datetime) -> Assessment:
    """An instance whose Pod was released: a trouble here fails the Pod, and its owner replaces it."""
    provider, state = claim.attempts[-1].candidate.provider, claim.observation.state
    if instance.preempted:
        failure = NoCapacityError(f"{provider} took instance {instance.id} back")
        ended = terminating(claim, now, why=TerminationReason.PREEMPTED, message=str(failure))
        return Assessment(ended, failure=failure)
    if state is InstanceState.FAILED or (state is InstanceState.EXITED and instance.exit_code is None):
        message = f"instance {instance.id} failed: {_words(instance)}"
        return Assessment(terminating(claim, now, why=TerminationReason.INSTANCE_FAILED, message=message))
    if state is InstanceState.EXITED:
        message = f"the container exited with code {instance.exit_code}"
        return Assessment(terminating(claim, now, why=TerminationReason.POD_FINISHED, message=message))
    if state is InstanceState.TERMINATED:
        message = f"instance {instance.id} was terminated outside of this installation"
        return Assessment(terminating(claim, now, why=TerminationReason.INSTANCE_LOST, message=message))
    if ready_deadline_passed(claim, now):
        message = f"instance {instance.id} ran, and is {_words(instance)} for longer than startDeadline"
        return Assessment(terminating(claim, now, why=TerminationReason.INSTANCE_FAILED, message=message))
    if start_deadline_passed(claim, now):
        failure = NoCapacityError(f"{provider} did not start instance {instance.id} within startDeadline")
        late = terminating(claim, now, why=TerminationReason.START_DEADLINE, message=str(failure))
        return Assessment(late, failure=failure)
    return Assessment(claim)


def _leaving(
    claim: Claim, listing: InstanceListing, capabilities: Capabilities, installation: str, now: datetime
) -> Assessment:
    provider = claim.attempts[-1].candidate.provider if claim.attempts else ""
    attempts = tuple(
        attempt
        if attempt.confirmed_gone or attempt.candidate.provider != provider
        else _ending(attempt, listing, capabilities, installation, claim.claim_id)
        for attempt in claim.attempts
    )
    if attempts == claim.attempts:
        return Assessment(claim, finished=claim.phase is Phase.TERMINATING and not claim.unconfirmed)
    changed = claim.model_copy(update={"attempts": attempts, "updated_at": now})
    if changed.unconfirmed:
        found = any(a.instance_id is not None and a.delete_accepted_at is None for a in changed.unconfirmed)
        return Assessment(changed.model_copy(update={"next_action_at": now}) if found else changed)
    if claim.phase is Phase.TERMINATING:
        return Assessment(changed, finished=True)
    return Assessment(
        back_to_pending(
            changed,
            now,
            reason=claim.reason,
            message=claim.message,
            next_action_at=now + pause_after(changed),
            rejected=True,
        )
    )


def pause_after(claim: Claim) -> timedelta:
    """How long a withdrawn claim rests before it buys again; nothing where the provider was at fault.

    A Pod that cannot be released costs an instance per try: the second time it waits, and twice as
    long each time after that.
    """
    bought = sum(attempt.outcome is AttemptOutcome.GONE for attempt in claim.attempts)
    if claim.reason not in RELEASE_TROUBLES or bought < 2:
        return timedelta(0)
    return min(FIRST_PAUSE * (1 << (bought - 2)), LONGEST_PAUSE)


def _ending(
    attempt: Attempt, listing: InstanceListing, capabilities: Capabilities, installation: str, claim_id: str
) -> Attempt:
    """An attempt that is being ended; what lost our mark meanwhile is not ours to end."""
    if is_strange(attempt, listing, installation, claim_id):
        return attempt if attempt.strange else attempt.model_copy(update={"strange": True})
    return _confirmed(attempt, listing, sighting(attempt, listing, installation, claim_id), capabilities)


def _confirmed(
    attempt: Attempt, listing: InstanceListing, instance: Instance | None, capabilities: Capabilities
) -> Attempt:
    """What this listing says of an attempt that is being ended.

    "Not found" is success for a delete, and also what a provider answers of an instance that it does not
    show yet: an absence from lists counts after an accepted delete only once it would have been shown.
    """
    if instance is not None:
        if instance.state is InstanceState.TERMINATED:
            return attempt.model_copy(update={"outcome": AttemptOutcome.GONE})
        return attempt.model_copy(
            update={
                "outcome": AttemptOutcome.CREATED,
                "instance_id": instance.id,
                "scope": instance.scope,
                "absent_since": None,
                "strange": False,
            }
        )
    if not absence_counts(attempt, listing, capabilities.visibility_delay):
        return attempt
    accepted = attempt.delete_accepted_at
    if accepted is not None and listing.began_at >= accepted:
        return attempt.model_copy(update={"outcome": AttemptOutcome.GONE})
    if absence_proved(attempt, listing.began_at):
        made = attempt.instance_id is not None
        return attempt.model_copy(update={"outcome": AttemptOutcome.GONE if made else AttemptOutcome.NEVER_MADE})
    if attempt.absent_since is None:
        return attempt.model_copy(update={"absent_since": listing.began_at})
    return attempt


def vanished_at_once(expected: int, missing: int) -> bool:
    """More than half of five or more gone in one look is *unknown*, not gone."""
    return expected >= 5 and missing * 2 > expected


def _words(instance: Instance) -> str:
    return instance.message or instance.provider_state or str(instance.state)


def unchanged(before: Claim, after: Claim) -> bool:
    """Whether a write would say nothing new."""
    return after is before or after == before
