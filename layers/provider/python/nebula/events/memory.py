"""The bus and the tick queue in memory. Thread-safe."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock
from typing import Any
from uuid import UUID

from nebula.clock import Clock
from nebula.events.details import DetailType
from nebula.events.entries import envelope_of, tick_event
from nebula.events.envelope import Event
from nebula.events.publisher import PublishError


class MemoryPublisher:
    """Keeps what was published until it is taken.

    ``fail_next(n)`` makes the next ``n`` calls raise ``PublishError`` with nothing published.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._waiting: list[dict[str, Any]] = []
        self._failures = 0
        self.events: list[Event] = []

    def publish(self, events: Sequence[Event]) -> None:
        """See ``Publisher.publish``."""
        with self._lock:
            if self._failures:
                self._failures -= 1
                raise PublishError(f"{len(events)} events refused by the script")
            for event in events:
                self.events.append(event)
                self._waiting.append(self._envelope(event))

    def fail_next(self, calls: int = 1) -> None:
        """Make the next calls fail."""
        with self._lock:
            self._failures = calls

    def take(self) -> list[dict[str, Any]]:
        """The envelopes published since the last call, oldest first."""
        with self._lock:
            taken, self._waiting = self._waiting, []
            return taken

    def of_type(self, detail_type: DetailType) -> list[Event]:
        """Every event of a type that was ever published."""
        with self._lock:
            return [event for event in self.events if event.detail_type is detail_type]

    def _envelope(self, event: Event) -> dict[str, Any]:
        return envelope_of(event, event_id=str(UUID(int=len(self.events))), time=self._clock.now())


@dataclass(frozen=True)
class QueuedTick:
    """One tick and when it may be received."""

    due_at: datetime
    body: dict[str, Any]


class MemoryTickQueue:
    """Keeps ticks until they come due."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._waiting: list[QueuedTick] = []
        self.enqueued = 0

    def enqueue(self, delays: Sequence[timedelta]) -> None:
        """See ``TickQueue.enqueue``."""
        now = self._clock.now()
        with self._lock:
            for delay in delays:
                self.enqueued += 1
                due_at = now + delay
                body = envelope_of(tick_event(due_at), event_id=str(UUID(int=self.enqueued)), time=now)
                self._waiting.append(QueuedTick(due_at, body))

    def take_due(self) -> list[QueuedTick]:
        """The ticks that have come due, oldest first; each is handed out once."""
        now = self._clock.now()
        with self._lock:
            due = sorted((t for t in self._waiting if t.due_at <= now), key=lambda t: t.due_at)
            self._waiting = [t for t in self._waiting if t.due_at > now]
            return due


def as_sqs_record(envelope: dict[str, Any], *, message_id: str, receives: int = 1) -> dict[str, Any]:
    """An envelope as the SQS record in which a function receives it."""
    return {
        "messageId": message_id,
        "receiptHandle": message_id,
        "body": json.dumps(envelope),
        "attributes": {"ApproximateReceiveCount": str(receives)},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
    }
