"""Values that are read from AWS seldom and used often: kept for a while, and longer while they cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Lock
from typing import Generic, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from nebula.clock import Clock

ValueT = TypeVar("ValueT")


class Remembered(Generic[ValueT]):
    """Values by name, absences (None) too. Safe to share between threads: two may read the same one at once."""

    def __init__(self, clock: Clock, keep: timedelta) -> None:
        self._clock = clock
        self._keep = keep
        self._lock = Lock()
        self._values: dict[str, tuple[datetime, ValueT]] = {}

    def read(self, name: str, load: Callable[[str], ValueT]) -> ValueT:
        """What ``load`` gave less than ``keep`` ago, or gives now. Where it fails, a value read earlier, however
        old; without one, its ``ClientError`` or ``BotoCoreError``.
        """
        now = self._clock.now()
        with self._lock:
            earlier = self._values.get(name)
        if earlier is not None and now < earlier[0]:
            return earlier[1]
        try:
            value = load(name)
        except (ClientError, BotoCoreError):
            if earlier is None or earlier[1] is None:
                raise
            return earlier[1]
        with self._lock:
            self._values[name] = (now + self._keep, value)
        return value


def code_of(error: ClientError | BotoCoreError) -> str:
    """The service's own code, or the kind of failure; never its message."""
    return error.response["Error"]["Code"] if isinstance(error, ClientError) else type(error).__name__
