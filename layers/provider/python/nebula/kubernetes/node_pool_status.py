"""A NodePool's status: what it should be, and the merge patch that makes it so, or nothing (docs/placement.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_CEILING, Decimal
from typing import Any, Final

from nebula.kubernetes.times import format_time

READY: Final = "Ready"
#: Reasons of the ``Ready`` condition; the first two are the Nebula operator's words.
VALID: Final = "Valid"
UNKNOWN_PROVIDER: Final = "UnknownProvider"
INVALID_SPEC: Final = "InvalidSpec"
_MAX_MESSAGE: Final = 1024
#: A price by the hour of a disk alone has ten decimals; nobody reads them.
_SHOWN: Final = Decimal("0.0001")


@dataclass(frozen=True)
class PoolPicture:
    """What a NodePool should show. Money is USD per hour; ``placed`` counts instances per provider."""

    ready: bool
    reason: str
    message: str
    providers: tuple[str, ...]
    placed: Mapping[str, int]
    committed_per_hour: Decimal


def pool_status_patch(node_pool: Mapping[str, Any], picture: PoolPicture, now: datetime) -> dict[str, Any] | None:
    """The merge patch of ``/status``; None when the live status says the same already.

    A merge patch replaces lists whole, so conditions of others are sent along unchanged, and removes a
    provider that holds nothing any more by a null.
    """
    live = node_pool.get("status") or {}
    changes: dict[str, Any] = {}
    for key, wanted in (
        ("providers", ",".join(picture.providers)),
        ("committedPerHour", amount(picture.committed_per_hour)),
    ):
        if live.get(key) != wanted:
            changes[key] = wanted
    placed = _placed(live.get("placed") or {}, picture.placed)
    if placed:
        changes["placed"] = placed
    conditions = _conditions(node_pool, picture, now)
    if conditions is not None:
        changes["conditions"] = conditions
    return {"status": changes} if changes else None


def ready_condition(node_pool: Mapping[str, Any]) -> Mapping[str, Any]:
    """The live ``Ready`` condition, empty when there is none."""
    found = (node_pool.get("status") or {}).get("conditions") or []
    return next((c for c in found if isinstance(c, Mapping) and c.get("type") == READY), {})


def amount(value: Decimal) -> str:
    """Plain digits, four decimals at most and never less than the value, without trailing zeros: ``2.39``, ``12``."""
    return f"{value.quantize(_SHOWN, ROUND_CEILING).normalize():f}" if value else "0"


def _placed(live: Mapping[str, Any], wanted: Mapping[str, int]) -> dict[str, int | None]:
    changed: dict[str, int | None] = {name: None for name in live if name not in wanted}
    changed.update({name: count for name, count in wanted.items() if live.get(name) != count})
    return changed


def _conditions(node_pool: Mapping[str, Any], picture: PoolPicture, now: datetime) -> list[Any] | None:
    live = ready_condition(node_pool)
    generation = (node_pool.get("metadata") or {}).get("generation")
    wanted: dict[str, Any] = {
        "type": READY,
        "status": "True" if picture.ready else "False",
        "reason": picture.reason,
        "message": picture.message[:_MAX_MESSAGE],
    }
    if isinstance(generation, int):
        wanted["observedGeneration"] = generation
    if all(live.get(key) == value for key, value in wanted.items()):
        return None
    since = live.get("lastTransitionTime") if live.get("status") == wanted["status"] else None
    wanted["lastTransitionTime"] = since or format_time(now)
    others = [c for c in (node_pool.get("status") or {}).get("conditions") or [] if c.get("type") != READY]
    return [*others, wanted]
