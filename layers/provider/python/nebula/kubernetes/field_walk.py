"""Applies the field table to a Pod's spec: what is refused by name, what is ignored with a word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from nebula.kubernetes.workload_fields import BY_PATH, Field, Treatment

_UNKNOWN: Final = "unknown to this release"
#: Kinds of values that ask for nothing when they are empty; a 0 or a false may ask for something.
_EMPTY_KINDS: Final = frozenset({type(None), str, list, dict})
#: Every path that leads to a row of the table.
_PREFIXES: Final = frozenset(
    path[:end] for path in BY_PATH for end in range(1, len(path)) if path[end] == "." or path[end : end + 2] == "[]"
)
_ELEMENTS: Final = frozenset(path for path in _PREFIXES | BY_PATH.keys() if path.endswith("[]"))


@dataclass(frozen=True)
class Finding:
    """A field that is set: where exactly, and how it is met. ``value`` is not kept."""

    path: str
    treatment: Treatment
    note: str
    quiet: bool = False

    def __str__(self) -> str:
        """``spec.hostNetwork (why)``."""
        return f"spec.{self.path} ({self.note})"


def findings(spec: Mapping[str, Any]) -> Iterator[Finding]:
    """Every field of the spec that asks for something, in the order in which it stands."""
    for key, value in spec.items():
        yield from _visit(value, key, key)


def _visit(value: Any, pattern: str, shown: str) -> Iterator[Finding]:
    if not value and type(value) in _EMPTY_KINDS:
        return
    field = BY_PATH.get(pattern)
    if field is not None:
        if not _harmless(value, field):
            yield Finding(shown, field.treatment, field.note, field.quiet)
    elif isinstance(value, list) and f"{pattern}[]" in _ELEMENTS:
        for index, item in enumerate(value):
            yield from _visit(item, f"{pattern}[]", f"{shown}[{_label(index, item)}]")
    elif isinstance(value, Mapping) and pattern in _PREFIXES:
        for key, item in value.items():
            yield from _visit(item, f"{pattern}.{key}", f"{shown}.{key}")
    else:
        yield Finding(shown, Treatment.REFUSED, _UNKNOWN)


def _label(index: int, item: Any) -> str:
    """An element's own name where it has one: ``volumes[cache]`` says more than ``volumes[1]``."""
    name = item.get("name") if isinstance(item, Mapping) else None
    return name if isinstance(name, str) and name else str(index)


def _harmless(value: Any, field: Field) -> bool:
    return any(value == harmless and type(value) is type(harmless) for harmless in field.harmless)
