"""What the ledgers say of a NodePool when a decision is taken: budget left, live claims, blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal

from nebula.domain.nodepool import NodePool, Strategy
from nebula.domain.unreadable import UnreadableClaim
from nebula.placement.request import ProviderSupply
from nebula.stores.blocks import Block, BlockStore
from nebula.stores.claims import ClaimStore


def budget_left(claims: ClaimStore, cluster: str, pool: NodePool) -> Decimal | None:
    """USD per hour that the pool's budget still holds; None without a budget, and nothing is read."""
    if pool.budget_per_hour is None:
        return None
    return pool.budget_per_hour - claims.budget(cluster, pool.name).committed_per_hour


def live_claims(claims: ClaimStore, cluster: str, pool: NodePool) -> Counter[str]:
    """The pool's live claims per provider, those that cannot be read included.

    Only ``Weighted`` looks at them, so only it pays for the read.
    """
    if pool.strategy is not Strategy.WEIGHTED:
        return Counter()
    unreadable: list[UnreadableClaim] = []
    live = list(claims.live(cluster, unreadable))
    counts = Counter(c.candidate.provider for c in live if c.node_pool == pool.name and c.candidate is not None)
    counts.update(row.provider for row in unreadable if row.node_pool == pool.name and row.provider)
    return counts


def active_blocks(blocks: BlockStore, supplies: Iterable[ProviderSupply], now: datetime) -> list[Block]:
    """The standing blocks of every configured provider among the supplies."""
    names = sorted({supply.name for supply in supplies if supply.capabilities is not None})
    return [block for name in names for block in blocks.active(name, now)]
