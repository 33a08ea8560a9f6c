"""An event as bytes: the same rendering for the bus, the tick queue and their memory twins."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from nebula.events.details import DetailType, TickDetail
from nebula.events.envelope import Event

TICK_SOURCE = "nebula.schedule"


def detail_json(event: Event) -> str:
    """The detail as compact JSON; fields that are None are left out."""
    return event.detail.model_dump_json(exclude_none=True)


def envelope_of(event: Event, *, event_id: str, time: datetime) -> dict[str, Any]:
    """The event in the shape in which EventBridge hands it to a target.

    Shape: https://docs.aws.amazon.com/eventbridge/latest/ref/overiew-event-structure.html. Account and
    region are left empty: nothing here reads them.
    """
    return {
        "version": "0",
        "id": event_id,
        "detail-type": str(event.detail_type),
        "source": event.source,
        "account": "",
        "time": f"{time:%Y-%m-%dT%H:%M:%SZ}",
        "region": "",
        "resources": [],
        "detail": json.loads(detail_json(event)),
    }


def bus_size(event: Event) -> int:
    """Bytes that an event counts against the bus's limit of one call.

    Rule: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevents.html (UTF-8 bytes of
    source, detail-type and detail; no time and no resources are sent here).
    """
    return sum(len(text.encode()) for text in (event.source, str(event.detail_type), detail_json(event)))


def tick_event(due_at: datetime) -> Event:
    """The event of one status tick."""
    return Event(source=TICK_SOURCE, detail_type=DetailType.STATUS_TICK, detail=TickDetail(due_at=due_at))
