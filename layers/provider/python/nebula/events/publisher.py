"""Where events leave: Protocols for the bus and the tick queue. Twins follow in this module's neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from nebula.events.envelope import Event


class PublishError(Exception):
    """Some events could not be put on the bus after a small number of tries.

    ``unsent`` holds them where they are known; empty means that none of them is known to be sent.
    """

    def __init__(self, message: str, unsent: Sequence[Event] = ()) -> None:
        super().__init__(message)
        self.unsent = tuple(unsent)


class Publisher(Protocol):
    """Puts events on the bus."""

    def publish(self, events: Sequence[Event]) -> None:
        """Put all events; entries that fail are tried again one by one, then PublishError."""
        ...


class TickQueue(Protocol):
    """Enqueues status ticks with a delay."""

    def enqueue(self, delays: Sequence[timedelta]) -> None:
        """One tick per delay from now, in one batch (at most ten)."""
        ...
