"""Putting claim events on the bus, and announcing what is due."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from nebula.domain.claim import Claim, Phase
from nebula.events.details import ClaimDetail, DetailType
from nebula.events.envelope import Event
from nebula.events.publisher import PublishError
from nebula.workflows.services import Services

#: A due claim is moved this far ahead before it is announced, so that a tick that repeats or a
#: handler that dies announces it again, but not every fifteen seconds.
ANNOUNCEMENT_HOLD = timedelta(seconds=60)
#: The most due claims announced per tick.
DUE_LIMIT = 200
#: Phases that are worked on at the provider alone.
_CLUSTERLESS = frozenset({Phase.WITHDRAWING, Phase.TERMINATING})
_REASON_LENGTH = 256


def claim_event(services: Services, detail_type: DetailType, claim: Claim) -> Event:
    """The event that hints at a claim."""
    return Event(
        source=services.source,
        detail_type=detail_type,
        detail=ClaimDetail(
            cluster=claim.cluster,
            claim_id=claim.claim_id,
            phase=str(claim.phase),
            version=claim.version,
            provider=claim.candidate.provider if claim.candidate is not None else "",
            reason=claim.reason[:_REASON_LENGTH],
        ),
    )


def publish_claim(services: Services, detail_type: DetailType, claim: Claim) -> bool:
    """Publish one claim event; see ``hint``."""
    return hint(services, [claim_event(services, detail_type, claim)])


def hint(services: Services, events: Sequence[Event]) -> bool:
    """Put events on the bus; False when it did not take them all, which is logged and costs a minute at most.

    An event is a hint: what it speaks of is in the ledger, where ``next_action_at`` or the sweep finds it. So a bus
    that refuses entries must never stop the work that the event only tells of.
    """
    try:
        services.publisher.publish(events)
    except PublishError as error:
        kinds = sorted({str(event.detail_type) for event in events})
        services.telemetry.warning("not announced", events=kinds, of=len(events), error=str(error))
        services.telemetry.count("EventsUnsent", len(error.unsent) or len(events))
        return False
    return True


def announce_due(services: Services) -> int:
    """Announce the oldest due claims; returns how many.

    Each is moved ahead by ``ANNOUNCEMENT_HOLD`` first, on condition that it still stands as read: of
    two ticks at once only one announces it. A claim whose cluster is not configured waits for its parameter:
    nobody could act on it, except where it only has to be given back. One whose phase only a newer release knows waits
    for that, out of the others' way.
    """
    now = services.clock.now()
    events = []
    found = services.claims.due(now, DUE_LIMIT)
    configured = set(services.clusters.names()) if found else set()
    for due in found:
        if due.phase is Phase.TERMINATED or not services.claims.touch(due, now + ANNOUNCEMENT_HOLD):
            continue
        if not isinstance(due.phase, Phase):
            continue
        if due.cluster not in configured and due.phase not in _CLUSTERLESS:
            continue
        events.append(
            Event(
                source=services.source,
                detail_type=DetailType.CLAIM_DUE,
                detail=ClaimDetail(
                    cluster=due.cluster,
                    claim_id=due.claim_id,
                    phase=str(due.phase),
                    version=due.version,
                    provider=due.provider,
                    reason=due.reason[:_REASON_LENGTH],
                ),
            )
        )
    if events and hint(services, events):
        services.telemetry.count("ClaimsDue", len(events))
    return len(events)
