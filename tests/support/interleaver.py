"""A second worker, all of whose work happens between two outside calls of the first, and another machine's clock."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import datetime
from typing import Any

from nebula.clock import Clock

from tests.support.tripwire import Tripwire


class NeverBack:
    """Another machine's clock: ours may step back, this one waits."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._latest = clock.now()

    def now(self) -> datetime:
        self._latest = max(self._latest, self._clock.now())
        return self._latest


class Interleaver(Tripwire):
    """A tripwire that can also let somebody else act before the n-th call from now."""

    def __init__(self) -> None:
        super().__init__()
        self._other: tuple[int, Callable[[], object]] | None = None

    def interrupt(self, number: int, other: Callable[[], object]) -> None:
        """Run ``other`` before the n-th call from now (1 is the next); once."""
        self._other = (len(self.log) + number, other)

    def disarm(self) -> None:
        """Neither crash nor interrupt any more."""
        super().disarm()
        self._other = None

    def _wrapped(self, name: str, method: Any) -> Any:
        inner = super()._wrapped(name, method)

        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            if self._other is not None and len(self.log) + 1 >= self._other[0]:
                _, other = self._other
                self._other = None
                other()
            return inner(*args, **kwargs)

        return call
