"""A token source that keeps what it read or made for a while."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime, timedelta
from threading import Lock

from pydantic import SecretStr

from nebula.clock import Clock


class CachedToken(ABC):
    """See ``transport.TokenSource``. Safe to share between threads: one fetches, the others wait for it."""

    def __init__(self, clock: Clock, lifetime: timedelta) -> None:
        self._clock = clock
        self._lifetime = lifetime
        self._lock = Lock()
        self._cached: tuple[SecretStr, datetime] | None = None

    @abstractmethod
    def fetch(self) -> SecretStr:
        """The token of now. Raises ``ClusterUnavailableError`` when there is none."""

    def token(self) -> SecretStr:
        """The cached token, or a new one after its lifetime; raises as ``fetch`` does."""
        with self._lock:
            now = self._clock.now()
            if self._cached is None or not timedelta() <= now - self._cached[1] < self._lifetime:
                self._cached = (self.fetch(), now)
            return self._cached[0]

    def renew(self) -> bool:
        """Drop the cached token after a 401."""
        with self._lock:
            self._cached = None
        return True
