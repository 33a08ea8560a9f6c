"""Sightings in memory. Thread-safe."""

from __future__ import annotations

from datetime import datetime
from threading import Lock


class MemorySightingStore:
    """See ``SightingStore``."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._seen: dict[str, datetime] = {}

    def first_seen(self, subject: str, now: datetime) -> datetime:
        """See ``SightingStore.first_seen``."""
        with self._lock:
            return self._seen.setdefault(subject, now)

    def known(self, subject: str) -> bool:
        """See ``SightingStore.known``."""
        with self._lock:
            return subject in self._seen

    def forget(self, subject: str) -> None:
        """See ``SightingStore.forget``."""
        with self._lock:
            self._seen.pop(subject, None)
