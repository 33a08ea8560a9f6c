"""Time, divided: how the local stack makes leases, receives and schedules run out in seconds.

One common divisor shortens schedule intervals, queue timers and function time-outs, and with them the
two settings that the template derives from these (the lease and the tick interval). Nothing else of the
product is touched.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pydantic import TypeAdapter

#: A function gets at least this long: below it no handler finishes on a busy machine.
MIN_TIMEOUT_SECONDS = 8.0
#: A lease must outlive the function that holds it.
LEASE_MARGIN_SECONDS = 2.0
DEFAULT_DIVISOR = 15.0

_LEASE = "NEBULA_LEASE"
_TICK_INTERVAL = "NEBULA_TICK_INTERVAL"
_QUEUE_TIMERS = ("VisibilityTimeout", "DelaySeconds", "MessageRetentionPeriod")
_MIN_RETENTION_SECONDS = 60
_RATE = re.compile(r"^rate\((\d+) (minute|hour|day)s?\)$")
_UNIT_SECONDS = {"minute": 60, "hour": 3600, "day": 86400}
_DURATION: TypeAdapter[timedelta] = TypeAdapter(timedelta)


@dataclass(frozen=True)
class Scale:
    """One divisor of time; 1 leaves every time as the template has it."""

    divisor: float = DEFAULT_DIVISOR

    def __post_init__(self) -> None:
        """ValueError for a divisor below 1."""
        if self.divisor < 1:
            raise ValueError("the time divisor must be at least 1")

    def timeout(self, seconds: float) -> float:
        """How long a function may run, in seconds."""
        return max(min(seconds, MIN_TIMEOUT_SECONDS), seconds / self.divisor)

    def schedule(self, expression: str) -> float:
        """Seconds between two runs of a ``rate(...)`` schedule; ValueError for any other expression."""
        found = _RATE.match(expression)
        if found is None:
            raise ValueError(f"the local stack knows rate(...) schedules only, not {expression!r}")
        return int(found[1]) * _UNIT_SECONDS[found[2]] / self.divisor

    def queue(self, properties: dict[str, Any]) -> dict[str, Any]:
        """A queue's properties with its timers shortened (whole seconds, SQS's own minima kept)."""
        scaled = dict(properties)
        for timer in _QUEUE_TIMERS:
            if timer in scaled:
                scaled[timer] = math.ceil(int(scaled[timer]) / self.divisor)
        if "MessageRetentionPeriod" in scaled:
            scaled["MessageRetentionPeriod"] = max(_MIN_RETENTION_SECONDS, scaled["MessageRetentionPeriod"])
        return scaled

    def environment(self, variables: dict[str, str], longest_timeout: float) -> dict[str, str]:
        """A function's environment with lease and tick interval shortened.

        ``longest_timeout`` is the scaled time-out of the function that takes leases.
        """
        scaled = dict(variables)
        if _LEASE in scaled:
            lease = _seconds(scaled[_LEASE]) / self.divisor
            scaled[_LEASE] = _iso(max(lease, longest_timeout + LEASE_MARGIN_SECONDS))
        if _TICK_INTERVAL in scaled:
            scaled[_TICK_INTERVAL] = _iso(_seconds(scaled[_TICK_INTERVAL]) / self.divisor)
        return scaled


def _seconds(duration: str) -> float:
    return _DURATION.validate_python(duration).total_seconds()


def _iso(seconds: float) -> str:
    return f"PT{seconds:g}S"
