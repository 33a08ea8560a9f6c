"""Putting claim events on the bus, and announcing what is due."""

from __future__ import annotations

from datetime import timedelta

from nebula.domain.claim import Claim, Phase
from nebula.events.details import ClaimDetail, DetailType
from nebula.events.envelope import Event
from nebula.workflows.services import Services

#: A due claim is moved this far ahead before it is announced, so that a tick that repeats or a
#: handler that dies announces it again, but not every fifteen seconds (design §7).
ANNOUNCEMENT_HOLD = timedelta(seconds=60)
#: The most due claims announced per tick.
DUE_LIMIT = 200
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


def publish_claim(services: Services, detail_type: DetailType, claim: Claim) -> None:
    """Publish one claim event. Raises ``PublishError``; the ledger's ``next_action_at`` heals a loss."""
    services.publisher.publish([claim_event(services, detail_type, claim)])


def announce_due(services: Services) -> int:
    """Announce the oldest due claims; returns how many.

    Each is moved ahead by ``ANNOUNCEMENT_HOLD`` first, on condition that it still stands as read: of
    two ticks at once only one announces it.
    """
    now = services.clock.now()
    events = []
    for due in services.claims.due(now, DUE_LIMIT):
        if due.phase is Phase.TERMINATED or not services.claims.touch(due, now + ANNOUNCEMENT_HOLD):
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
    if events:
        services.publisher.publish(events)
        services.telemetry.count("ClaimsDue", len(events))
    return len(events)
