"""Time, injected: aware UTC everywhere, so that every decision can be replayed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol


def parse_time(text: object) -> datetime | None:
    """RFC 3339 as aware UTC; None for anything that is not a time with a zone."""
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
        return moment.astimezone(UTC) if moment is not None and moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> datetime:
        """Aware UTC."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Aware UTC."""
        return datetime.now(UTC)


class ManualClock:
    """A clock that only moves when told."""

    def __init__(self, start: datetime) -> None:
        if start.tzinfo is None:
            raise ValueError("start must be aware")
        self._now = start.astimezone(UTC)

    def now(self) -> datetime:
        """Aware UTC."""
        return self._now

    def advance(self, by: timedelta) -> datetime:
        """Move by a duration (backwards too) and return the new time."""
        self._now += by
        return self._now
