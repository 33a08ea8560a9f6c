"""What one claim write means for the NodePools' counters; one rule for every twin (docs/placement.md)."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from nebula.domain.claim import Claim


@dataclass(frozen=True)
class CounterChange:
    """A counter and the USD per hour to add to it (negative frees).

    ``room`` is the most that may stand committed before the addition; None when nothing limits it.
    """

    cluster: str
    node_pool: str
    delta: Decimal
    room: Decimal | None = None


def counter_changes(previous: Claim | None, claim: Claim, limit: Decimal | None) -> tuple[CounterChange, ...]:
    """The counters that a write moves: none when the claim holds what it held.

    A claim that changed its NodePool frees the old counter and fills the new one. ``limit`` (USD/h) is
    the new NodePool's budget and binds only what grows.
    """
    held: dict[tuple[str, str], Decimal] = {}
    if previous is not None:
        held[previous.cluster, previous.node_pool] = -previous.committed_per_hour
    key = (claim.cluster, claim.node_pool)
    held[key] = held.get(key, Decimal(0)) + claim.committed_per_hour
    return tuple(
        CounterChange(cluster, pool, delta, limit - delta if limit is not None and delta > 0 else None)
        for (cluster, pool), delta in held.items()
        if delta
    )
