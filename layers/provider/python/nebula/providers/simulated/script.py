"""What goes wrong, when, and how long calls take: the script of the simulated provider. Thread-safe."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from threading import Lock


class Call(StrEnum):
    """One kind of outside call."""

    PROVISION = "provision"
    FIND = "find"
    GET = "get"
    LIST = "list"
    TERMINATE = "terminate"
    OFFERINGS = "offerings"
    ACCOUNT = "account"
    REGISTRY_ENSURE = "registry_ensure"
    REGISTRY_LIST = "registry_list"
    REGISTRY_DELETE = "registry_delete"


Predicate = Callable[[object], bool]


@dataclass
class _Fault:
    error: BaseException
    remaining: int
    after: bool
    matches: Predicate | None

    def applies(self, subject: object, *, after: bool) -> bool:
        if self.remaining <= 0 or self.after is not after:
            return False
        return self.matches is None or self.matches(subject)


class Script:
    """Faults in the order in which they were added, and a latency per call.

    ``counts`` tells how often each call was made, failed ones included. ``sleep`` receives seconds.
    """

    def __init__(self, sleep: Callable[[float], None] = time.sleep) -> None:
        self._sleep = sleep
        self._lock = Lock()
        self._faults: dict[Call, list[_Fault]] = {}
        self._latencies: dict[Call, timedelta] = {}
        self._hook: Callable[[Call, object], None] | None = None
        self.counts: Counter[Call] = Counter()

    def fail(
        self,
        call: Call,
        error: BaseException,
        *,
        times: int = 1,
        after: bool = False,
        matches: Predicate | None = None,
    ) -> None:
        """Let the next ``times`` matching calls raise ``error``.

        With ``after`` the call takes effect first: the answer is lost, the instance exists. ``matches``
        sees what the call is about (a ``ProvisionRequest``, a mark, an id, a name).
        """
        with self._lock:
            self._faults.setdefault(call, []).append(_Fault(error, times, after, matches))

    def heal(self) -> None:
        """Forget every fault and latency that is left."""
        with self._lock:
            self._faults.clear()
            self._latencies.clear()

    def delay(self, call: Call, latency: timedelta) -> None:
        """Let each such call take this long."""
        with self._lock:
            self._latencies[call] = latency

    def before_each(self, hook: Callable[[Call, object], None] | None) -> None:
        """Run ``hook`` before every call takes effect (to crash there, or to let another actor in)."""
        self._hook = hook

    @contextmanager
    def call(self, call: Call, subject: object = None) -> Iterator[None]:
        """Wrap the effect of one call: latency and early faults before it, late ones after it."""
        with self._lock:
            self.counts[call] += 1
            latency = self._latencies.get(call)
        if latency:
            self._sleep(latency.total_seconds())
        if self._hook is not None:
            self._hook(call, subject)
        self._raise_next(call, subject, after=False)
        yield
        self._raise_next(call, subject, after=True)

    def _raise_next(self, call: Call, subject: object, *, after: bool) -> None:
        if not self._faults:
            return
        with self._lock:
            fault = next((f for f in self._faults.get(call, ()) if f.applies(subject, after=after)), None)
            if fault is None:
                return
            fault.remaining -= 1
        raise fault.error
