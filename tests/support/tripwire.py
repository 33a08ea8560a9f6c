"""Crashing at any outside call: before it takes effect, or after it did and before anybody knew."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any


class CrashError(BaseException):
    """The process is gone. Not an ``Exception``, so that nothing in the product can catch it."""


class Tripwire:
    """Counts the calls of the objects it watches and crashes at the one that is armed.

    ``log`` names every call in order; ``arm(n)`` crashes at the n-th call from now (1 is the next),
    with ``after`` once its effect stands.
    """

    def __init__(self) -> None:
        self.log: list[str] = []
        self._at: int | None = None
        self._after = False

    def watch(self, name: str, target: object, methods: Iterable[str]) -> None:
        """Wrap these methods of one object in place."""
        for method in methods:
            setattr(target, method, self._wrapped(f"{name}.{method}", getattr(target, method)))

    def arm(self, number: int, *, after: bool = False) -> None:
        """Crash at the n-th call from now."""
        self._at = len(self.log) + number
        self._after = after

    def disarm(self) -> None:
        """Never crash again."""
        self._at = None

    def _wrapped(self, name: str, method: Any) -> Any:
        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            self.log.append(name)
            tripped = self._at is not None and len(self.log) == self._at
            if tripped and not self._after:
                raise CrashError(f"before {name}")
            result = method(*args, **kwargs)
            if tripped:
                raise CrashError(f"after {name}")
            return result

        return call


WATCHED = {
    "claims": ("create", "save", "touch", "get", "due"),
    "blocks": ("put",),
    "publisher": ("publish",),
    "ticks": ("enqueue",),
    "api": (
        "get_pod",
        "list_pods",
        "patch_pod",
        "patch_pod_status",
        "delete_pod",
        "get_node",
        "create_node",
        "patch_lease",
        "create_event",
    ),
    "simulated": ("provision", "find", "get", "list_instances", "terminate"),
}


def wired(world: Any) -> Tripwire:
    """A tripwire over every edge of a world."""
    wire = Tripwire()
    for name, methods in WATCHED.items():
        wire.watch(name, getattr(world, name), methods)
    return wire
