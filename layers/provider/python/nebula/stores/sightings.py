"""What was seen once and must be seen twice before anybody acts on it (design §7, orphans)."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class SightingStore(Protocol):
    """Remembers when something odd was first seen. Rows are forgotten on request, or by TTL after a day."""

    def first_seen(self, subject: str, now: datetime) -> datetime:
        """When ``subject`` was first seen: ``now`` when it was not known before."""
        ...

    def known(self, subject: str) -> bool:
        """Whether ``subject`` was seen and not forgotten; never writes."""
        ...

    def forget(self, subject: str) -> None:
        """It is not odd any more. Absent is fine."""
        ...
