"""A second worker whose work happens between two calls of the first, another machine's clock, an index that lags."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from nebula.clock import Clock
from nebula.domain.claim import Claim
from nebula.domain.unreadable import UnreadableClaim
from nebula.providers.simulated import SimulatedProvider
from nebula.stores.memory_claims import MemoryClaimStore

from tests.support.tripwire import Tripwire


class NeverBack:
    """Another machine's clock: ours may step back, this one waits."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._latest = clock.now()

    def now(self) -> datetime:
        self._latest = max(self._latest, self._clock.now())
        return self._latest


class NeverRefuses(SimulatedProvider):
    """Deletes every registry credential that it is told to, also one that a machine uses."""

    def _carries_credential(self, credential_id: str) -> bool:
        return False


class LaggingIndex(MemoryClaimStore):
    """Claims whose credential index shows what was written in this very instant only later, while ``lags``."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._written: dict[tuple[str, str], datetime] = {}
        self.lags = False

    def find_by_credential(self, credential_key: str) -> Sequence[Claim | UnreadableClaim]:
        found = super().find_by_credential(credential_key)
        now = self._clock.now()
        return [one for one in found if not self.lags or self._written[one.claim_id, credential_key] < now]

    def _put(self, claim: Claim) -> None:
        super()._put(claim)
        if claim.credential_key is not None:
            self._written.setdefault((claim.claim_id, claim.credential_key), self._clock.now())


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
