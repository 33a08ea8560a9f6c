"""The walk over interchangeable instance types inside one ``provision`` (RunPod takes one type per create)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from nebula.providers.errors import (
    NoCapacityError,
    ProviderError,
    QuotaExceededError,
    RequestRefusedError,
    UnsupportedAcceleratorError,
)

_NEXT_TYPE = (NoCapacityError, QuotaExceededError, UnsupportedAcceleratorError, RequestRefusedError)
_LAST_WORD = (NoCapacityError, QuotaExceededError, UnsupportedAcceleratorError, RequestRefusedError)

T = TypeVar("T")


def walk(types: Sequence[str], create: Callable[[str], T], has_time: Callable[[], bool]) -> tuple[T, tuple[str, ...]]:
    """Try each type in order while there is time; the first success, and a line per type refused before it.

    Errors that say nothing about another type (key, balance, throttle, image, unknown outcome) end the
    walk at once. When all are refused the error is one of the kind that frees soonest: capacity, then
    quota, then unsupported, then refused. Every error carries one line per type that was tried.
    """
    refused: list[ProviderError] = []
    lines: list[str] = []
    for number, instance_type in enumerate(types):
        if number and not has_time():
            lines += [f"{left}: not tried, no time left" for left in types[number:]]
            break
        try:
            return create(instance_type), tuple(lines)
        except ProviderError as error:
            lines.append(f"{instance_type}: {error}")
            if not isinstance(error, _NEXT_TYPE):
                error.failures = tuple(lines)
                raise
            refused.append(error)
    raise _summary(refused, lines)


def _summary(refused: list[ProviderError], lines: list[str]) -> ProviderError:
    if not refused:
        return UnsupportedAcceleratorError("the candidate names no instance type", failures=tuple(lines))
    for kind in _LAST_WORD:
        last = [error for error in refused if isinstance(error, kind)]
        if last:
            break
    error = last[-1]
    error.failures = tuple(lines)
    if len(lines) > 1:
        error.args = (f"none of {len(lines)} types: {error}",)
    return error
