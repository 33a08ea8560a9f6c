"""From the NodePool of the API server to the domain model (docs/placement.md).

Vocabulary and defaults: InftyAI/Nebula ``api/v1alpha1/nodepool_types.go``, with the additions of
``cluster/crds``. Durations are Go's (``30s``, ``1h30m``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from pydantic import ValidationError

from nebula.domain.nodepool import NodePool
from nebula.kubernetes.node_pool_rules import broken_rules
from nebula.kubernetes.quantity import InvalidQuantityError, parse_quantity

#: JSON name → model name, where they differ by more than case.
_NAMES: Final = {"blocklistTTL": "blocklist_ttl"}
_DURATIONS: Final = frozenset({"blocklistTTL", "reserveDeadline", "releaseDeadline", "startDeadline"})
_MONEY: Final = frozenset({"maxPricePerHour", "budgetPerHour"})
_FREE_FORM: Final = frozenset({"parameters"})
_PART: Final = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?P<unit>ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_UNITS: Final = {
    "ns": Fraction(1, 1000),
    "us": Fraction(1),
    "µs": Fraction(1),
    "μs": Fraction(1),
    "ms": Fraction(1000),
    "s": Fraction(10**6),
    "m": Fraction(60 * 10**6),
    "h": Fraction(3600 * 10**6),
}
_MAX_DURATION: Final = timedelta(days=365)


class InvalidNodePoolError(ValueError):
    """The NodePool cannot be used. ``field`` is its JSON path (``spec.failover.blocklistTTL``)."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


def parse_duration(text: object) -> timedelta:
    """Read a Go duration, not negative and at most a year; ValueError otherwise.

    https://pkg.go.dev/time#ParseDuration . Parts finer than a microsecond are cut off.
    """
    if text == "0":
        return timedelta(0)
    if not isinstance(text, str) or not text or len(text) > 64:
        raise ValueError("expected a duration like 30s, 5m or 1h30m")
    rest, microseconds = text.removeprefix("+"), Fraction(0)
    while rest:
        match = _PART.match(rest)
        if match is None:
            raise ValueError("expected a duration like 30s, 5m or 1h30m")
        microseconds += Fraction(match["number"].rstrip(".")) * _UNITS[match["unit"]]
        rest = rest[match.end() :]
    if microseconds > _MAX_DURATION / timedelta(microseconds=1) or text == "+":
        raise ValueError("expected a duration of at most a year")
    return timedelta(microseconds=int(microseconds))


def node_pool_from_object(value: Mapping[str, Any]) -> NodePool:
    """The NodePool as the domain knows it, with defaults filled in.

    Raises InvalidNodePoolError that names the field and shows no value. Fields unknown to this
    release are refused: a policy that is not understood must not be half kept.
    """
    metadata, spec = value.get("metadata"), value.get("spec")
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get("name"), str):
        raise InvalidNodePoolError("metadata.name", "expected text")
    if not isinstance(spec, Mapping):
        raise InvalidNodePoolError("spec", "expected an object")
    egress = spec.get("egress")
    if isinstance(egress, Mapping) and egress.get("mode") is None:
        raise InvalidNodePoolError("spec.egress.mode", "is required once egress is set")
    fields = _converted(spec, "spec")
    fields["name"] = metadata["name"]
    fields["resource_version"] = str(metadata.get("resourceVersion") or "")
    fields["revision"] = revision_of(value)
    try:
        pool = NodePool.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        raise InvalidNodePoolError(_path(first["loc"]), first["msg"]) from None
    for field, message in broken_rules(pool):
        raise InvalidNodePoolError(field, message)
    return pool


def revision_of(value: Mapping[str, Any] | None) -> str:
    """``uid/generation``: one per spec, whatever its status says; empty for none.

    The API server raises ``generation`` with the spec only, the status being a subresource.
    """
    metadata = (value or {}).get("metadata")
    if not isinstance(metadata, Mapping):
        return ""
    return f"{metadata.get('uid') or ''}/{metadata.get('generation') or 0}"


def _converted(value: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Keys in the model's spelling, durations and money as such; nulls dropped so that defaults apply."""
    fields: dict[str, Any] = {}
    for key, item in value.items():
        if item is not None:
            fields[_model_name(key)] = _item(key, item, f"{where}.{key}")
    return fields


def _item(key: str, item: Any, where: str) -> Any:
    try:
        if key in _DURATIONS:
            return parse_duration(item)
        if key in _MONEY:
            return _money(item)
    except (ValueError, InvalidQuantityError) as error:
        raise InvalidNodePoolError(where, str(error)) from None
    if isinstance(item, Mapping) and key not in _FREE_FORM:
        return _converted(item, where)
    if isinstance(item, list):
        return tuple(
            _converted(entry, f"{where}[{index}]") if isinstance(entry, Mapping) else entry
            for index, entry in enumerate(item)
        )
    return item


def _money(item: Any) -> Decimal:
    amount = parse_quantity(item)
    if amount <= 0:
        raise ValueError("expected an amount of USD per hour above zero")
    return amount


def _model_name(key: str) -> str:
    return _NAMES.get(key) or re.sub(r"(?<=[a-z])([A-Z])", lambda m: f"_{m[1].lower()}", key)


def _json_name(name: str) -> str:
    known = {model: json for json, model in _NAMES.items()}
    return known.get(name) or re.sub(r"_([a-z])", lambda m: m[1].upper(), name)


def _path(loc: tuple[int | str, ...]) -> str:
    path = "spec"
    for part in loc:
        path += f"[{part}]" if isinstance(part, int) else f".{_json_name(part)}"
    return path
