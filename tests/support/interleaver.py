"""A second worker: all that it does happens between two outside calls of the first."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tests.support.tripwire import Tripwire


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
