"""Scripted faults: next-N failures by route, a random mix, quotas and latency."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from local.in_process import DroppedError
from local.runpod.market import NO_CAPACITY
from local.runpod.wire import ProblemError, Response, title_of

CHAOS_KINDS = ("429", "500", "500_after", "drop_before", "drop_after", "capacity")


@dataclass
class Failure:
    """One scripted failure.

    Fields that are None match everything: ``method``, ``path`` (a regular expression over the whole
    path), ``contains`` (in the body). With ``after`` the call takes effect first. ``drop`` cuts the
    connection instead of answering. ``raw`` is sent as it is, else a problem document.
    """

    status: int = 500
    detail: str = "Something went wrong. Please try again later or contact support."
    errors: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    method: str | None = None
    path: str | None = None
    contains: str | None = None
    times: int = 1
    after: bool = False
    drop: bool = False
    raw: str | None = None

    def matches(self, method: str, path: str, body: bytes) -> bool:
        """Whether it applies to a call."""
        return (
            self.times > 0
            and (self.method is None or self.method == method)
            and (self.path is None or re.fullmatch(self.path, path) is not None)
            and (self.contains is None or self.contains.encode() in body)
        )

    def response(self) -> Response:
        """The failing answer; raises ``DroppedError`` when there is none."""
        if self.drop:
            raise DroppedError
        if self.raw is not None:
            return Response(self.status, {"Content-Type": "text/html", **self.headers}, self.raw.encode())
        content: dict[str, Any] = {"title": title_of(self.status), "status": self.status, "detail": self.detail}
        if self.errors:
            content["errors"] = self.errors
        headers = {"Content-Type": "application/problem+json", **self.headers}
        return Response(self.status, headers, json.dumps(content).encode())


@dataclass
class Chaos:
    """A share of all calls that fails at random, by a seed."""

    share: float
    kinds: tuple[str, ...] = CHAOS_KINDS
    seed: int = 0

    def __post_init__(self) -> None:
        unknown = set(self.kinds) - set(CHAOS_KINDS)
        if unknown:
            raise ValueError(f"unknown kinds {sorted(unknown)}")
        self._random = random.Random(self.seed)  # noqa: S311  a repeatable test, no secret

    def draw(self, method: str, path: str) -> Failure | None:
        """The failure of this call, if any. Capacity errors and late faults only where they make sense."""
        if self._random.random() >= self.share:
            return None
        kind = self._random.choice(self.kinds)
        if kind == "429":
            return Failure(429, "rate limit exceeded for the minute window", headers={"Retry-After": "1"})
        if kind == "capacity":
            return Failure(400, NO_CAPACITY) if (method, path) == ("POST", "/v2/pods") else None
        return Failure(after=kind.endswith("_after"), drop=kind.startswith("drop"))


@dataclass
class Quota:
    """Calls per window, answered 429 beyond; its headers come with every authenticated answer."""

    limit: int
    window: timedelta = timedelta(minutes=1)
    _since: datetime | None = None
    _used: int = 0

    def count(self, now: datetime) -> dict[str, str]:
        """Count one call; the headers of its answer. Raises the 429."""
        if self._since is None or now - self._since >= self.window:
            self._since, self._used = now, 0
        left = max(0, self.limit - self._used)
        self._used += 1
        wait = max(1, int((self.window - (now - self._since)).total_seconds()))
        headers = {
            "RateLimit": f'"minute";r={max(0, left - 1)};t={wait}',
            "RateLimit-Policy": f'"minute";q={self.limit};w={int(self.window.total_seconds())}',
        }
        if not left:
            raise ProblemError(
                429, "rate limit exceeded for the minute window", headers={**headers, "Retry-After": str(wait)}
            )
        return headers


class Faults:
    """All of it together. Not thread-safe: the simulator holds the lock."""

    def __init__(self) -> None:
        self.scripted: list[Failure] = []
        self.chaos: Chaos | None = None
        self.quota: Quota | None = None
        self.latency = timedelta(0)

    def next(self, method: str, path: str, body: bytes) -> Failure | None:
        """The failure that this call meets; scripted ones come first and are used up."""
        for failure in self.scripted:
            if failure.matches(method, path, body):
                failure.times -= 1
                return failure
        return self.chaos.draw(method, path) if self.chaos is not None else None

    def clear(self) -> None:
        """No faults, no quota, no latency."""
        self.__init__()  # type: ignore[misc]


def failure_from(content: Mapping[str, Any]) -> Failure:
    """Read a control body. ValueError for a field that there is not."""
    unknown = set(content) - set(Failure.__dataclass_fields__)
    if unknown:
        raise ValueError(f"unknown fields {sorted(unknown)}")
    return Failure(**content)
