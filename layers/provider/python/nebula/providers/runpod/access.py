"""What a 403 on create means when its words do not tell.

RunPod answers 403 both to a key without the scope and to an account that may not use a pool of
machines; the texts are unknown. One pool refused may be the pool; a second one means the key.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from threading import Lock

REMEMBER_FOR = timedelta(minutes=15)


class PoolRefusals:
    """Pools refused with an undecided 403 lately. Kept in the provider, so in one warm process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._refused: dict[str, datetime] = {}

    def another(self, pool: str, now: datetime) -> bool:
        """Note a refused pool; True when a different one was refused so within ``REMEMBER_FOR``."""
        with self._lock:
            self._refused = {name: at for name, at in self._refused.items() if now - at < REMEMBER_FOR}
            others = any(name != pool for name in self._refused)
            self._refused[pool] = now
            return others

    def clear(self) -> None:
        """Forget them: a pod was created, so the key may create."""
        with self._lock:
            self._refused.clear()
