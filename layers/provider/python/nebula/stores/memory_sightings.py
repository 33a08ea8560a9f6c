"""Sightings in memory. Thread-safe."""

from __future__ import annotations

from datetime import datetime
from threading import Lock

from nebula.stores.sightings import KEEP


class MemorySightingStore:
    """See ``SightingStore``."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._seen: dict[str, datetime] = {}
        self._notes: dict[str, str] = {}

    def first_seen(self, subject: str, now: datetime) -> datetime:
        """See ``SightingStore.first_seen``."""
        with self._lock:
            if not self._stands(subject, now):
                self._seen[subject] = now
            return self._seen[subject]

    def known(self, subject: str, now: datetime) -> bool:
        """See ``SightingStore.known``."""
        with self._lock:
            return self._stands(subject, now)

    def note(self, subject: str, value: str, now: datetime) -> str | None:
        """See ``SightingStore.note``; ``now`` does not matter here."""
        del now
        with self._lock:
            before = self._notes.get(subject)
            self._notes[subject] = value
            return before

    def recall(self, subject: str) -> str | None:
        """See ``SightingStore.recall``."""
        with self._lock:
            return self._notes.get(subject)

    def forget(self, subject: str) -> None:
        """See ``SightingStore.forget``."""
        with self._lock:
            self._seen.pop(subject, None)

    def _stands(self, subject: str, now: datetime) -> bool:
        seen = self._seen.get(subject)
        return seen is not None and now < seen + KEEP
