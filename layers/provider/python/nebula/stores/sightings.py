"""What was seen once and must be seen twice before anybody acts on it (orphans)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol

#: Long enough to see anything twice, short enough that a stale row does no harm.
KEEP = timedelta(days=1)


class SightingStore(Protocol):
    """Remembers when something odd was first seen. A sighting is forgotten on request, or after a day."""

    def first_seen(self, subject: str, now: datetime) -> datetime:
        """When ``subject`` was first seen: ``now`` when it was not known before."""
        ...

    def known(self, subject: str, now: datetime) -> bool:
        """Whether ``subject`` was seen within the day before ``now`` and not forgotten; never writes."""
        ...

    def note(self, subject: str, value: str, now: datetime) -> str | None:
        """Remember one value for ``subject``; returns the one remembered before, None at the first time.

        Writes only when the value is another one. Kept for years, not for a day.
        """
        ...

    def recall(self, subject: str) -> str | None:
        """The value that was noted last for ``subject``; never writes."""
        ...

    def forget(self, subject: str) -> None:
        """It is not odd any more. Absent is fine."""
        ...
