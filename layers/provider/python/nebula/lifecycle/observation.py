"""From an instance as listed to what the claim remembers of it."""

from __future__ import annotations

from datetime import datetime, timedelta

from nebula.domain.claim import Attempt, Observation
from nebula.domain.instance import Instance, InstanceListing, InstanceState, Mark

#: Two listings that prove an absence must begin this far apart.
ABSENCE_GAP = timedelta(seconds=10)
#: Two looks that prove a *mass* vanishing must be this far apart. More than half of everything is gone far more
#: often by a wrong answer (another endpoint, an API server restored from an old copy) than in truth, and
#: this is longer than the alarm for unknown systems needs to ring (three minutes of five).
BELIEVED_AFTER = timedelta(minutes=5)

_ENDED = frozenset({InstanceState.EXITED, InstanceState.FAILED, InstanceState.TERMINATED})


def observed(
    before: Observation, instance: Instance, now: datetime, *, not_before: datetime | None = None
) -> Observation:
    """What to remember after seeing ``instance``; equal to ``before`` when nothing of it changed.

    ``not_before`` is when it was asked for: whatever its provider says, it began between then and ``now`` (a time
    that is not set yet may read as the year 1). The running rate and the end are kept: providers report a cost of 0
    and forget times once an instance has stopped. An ended instance never becomes a running one again (terminal is
    sticky).
    """
    if before.state in _ENDED:
        return before
    cost = instance.cost_per_hour if instance.cost_per_hour else before.cost_per_hour
    running_since = before.running_since
    if running_since is None and instance.state is InstanceState.RUNNING:
        running_since = _within(instance.started_at, not_before, now)
    return Observation(
        state=instance.state,
        cost_per_hour=cost,
        instance_type=instance.instance_type or before.instance_type,
        region=instance.region or before.region,
        endpoint=instance.endpoint or before.endpoint,
        exit_code=instance.exit_code if instance.exit_code is not None else before.exit_code,
        running_since=running_since,
        unready_since=_unready_since(before, instance, now),
        ended_at=now if instance.state in _ENDED else None,
        message=instance.message,
    )


def dead(state: InstanceState, exit_code: int | None) -> bool:
    """Whether nothing runs there any more, and no exit code tells that it ran to its end."""
    return state in _ENDED and not (state is InstanceState.EXITED and exit_code is not None)


def _within(moment: datetime | None, not_before: datetime | None, now: datetime) -> datetime:
    """A time as it is told, moved between what is possible: ``now`` where there is none."""
    if moment is None or moment > now:
        return now
    return moment if not_before is None else min(max(moment, not_before), now)


def _unready_since(before: Observation, instance: Instance, now: datetime) -> datetime | None:
    """Since when an instance that ran is reported as pending: a word we do not know, or a step back."""
    if instance.state is not InstanceState.PENDING or before.running_since is None:
        return None
    return before.unready_since or now


def sighting(attempt: Attempt, listing: InstanceListing, installation: str, claim_id: str) -> Instance | None:
    """The attempt's instance in a listing: by its id *and* mark, by mark alone while it has no id.

    An instance that ended needs no mark: there is nothing left of it to touch.
    """
    mark = Mark(installation=installation, claim_id=claim_id, attempt=attempt.number)
    if attempt.instance_id is None:
        return listing.by_mark.get(mark)
    instance = listing.by_id.get(attempt.instance_id)
    ours = instance is not None and (instance.mark == mark or instance.state is InstanceState.TERMINATED)
    return instance if ours else None


def is_strange(attempt: Attempt, listing: InstanceListing, installation: str, claim_id: str) -> bool:
    """Whether the attempt's id is on an instance that carries another mark or none: it is not ours to touch.

    A listing that is not complete may have left a mark out, so that a missing one says nothing there.
    """
    instance = listing.by_id.get(attempt.instance_id or "")
    if instance is None or sighting(attempt, listing, installation, claim_id) is not None:
        return False
    return instance.mark is not None or listing.is_complete(attempt.scope)


def absence_counts(attempt: Attempt, listing: InstanceListing, visibility_delay: timedelta) -> bool:
    """Whether missing from this listing says anything: complete, and begun late enough to have shown it.

    What is listed under the attempt's id is not absent, whatever its mark says.
    """
    if attempt.instance_id in listing.by_id:
        return False
    return listing.is_complete(attempt.scope) and listing.began_at >= attempt.lease_until + visibility_delay


def absence_proved(attempt: Attempt, began_at: datetime, gap: timedelta = ABSENCE_GAP) -> bool:
    """Whether a second counting absence, begun at ``began_at``, proves that nothing is there."""
    return attempt.absent_since is not None and began_at - attempt.absent_since >= gap
