"""The walk: every candidate of a NodePool in its order, each filtered once (design §6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from nebula.domain.candidate import CapacityType, Shape, place_of
from nebula.domain.nodepool import NodePool
from nebula.placement import filters
from nebula.placement.blocklist import Blockade
from nebula.placement.request import PlacementRequest, ProviderSupply
from nebula.placement.verdict import Offer, Refusal
from nebula.providers.base import RegionSet
from nebula.stores.blocks import Block

ANYWHERE = "any"


def walk(
    request: PlacementRequest,
    pool: NodePool,
    supplies: Sequence[ProviderSupply],
    blocks: Sequence[Block],
    now: datetime,
) -> list[Offer]:
    """Tier, then provider, then region, then size; a candidate that the pool names twice counts once."""
    entries = [_Entry(supply, request, pool, blocks, now) for supply in _distinct(supplies)]
    offers: list[Offer] = []
    for tier in dict.fromkeys(pool.capacity_types):
        for entry in entries:
            entry.judge(tier, offers)
    return offers


def _distinct(supplies: Sequence[ProviderSupply]) -> list[ProviderSupply]:
    """Supplies without the regions that an earlier entry of the same provider and parameters has."""
    seen: set[tuple[str, str]] = set()
    found = []
    for supply in supplies:
        suffix = place_of("", supply.entry.parameters)
        labels = dict.fromkeys(region_set.label for region_set in supply.region_sets) or {_whole(supply): None}
        fresh = [label for label in labels if (supply.name, label + suffix) not in seen]
        seen.update((supply.name, label + suffix) for label in fresh)
        if fresh and len(fresh) >= len(supply.region_sets):
            found.append(supply)
        elif fresh:
            kept = {region_set.label: region_set for region_set in supply.region_sets if region_set.label in fresh}
            found.append(replace(supply, region_sets=tuple(kept.values())))
    return found


class _Entry:
    """One provider entry within one decision, with what its candidates share worked out once."""

    def __init__(
        self,
        supply: ProviderSupply,
        request: PlacementRequest,
        pool: NodePool,
        blocks: Sequence[Block],
        now: datetime,
    ) -> None:
        self.name = supply.name
        self.supply = supply
        self.request = request
        self.pool = pool
        self.now = now
        self.limit = _lower(pool.max_price_per_hour, request.budget_left)
        self.picky = bool(request.exclusions or request.over_budget)
        self.policy = filters.refuse_policy(supply, pool, request)
        self.refusal = filters.refuse_provider(supply)
        self.asked = (request.shape, str(request.shape))
        self.lineup = supply.catalogue.lineup(*self.asked)
        self.parameters = supply.entry.parameters
        suffix = place_of("", self.parameters)
        self.places = [(region_set, region_set.label + suffix) for region_set in supply.region_sets]
        self.sizes: list[_Size] = []
        if self.refusal is None and not self.places:
            self.refusal = filters.refuse_nowhere(supply)
        if self.refusal is None:
            self._choose_sizes([block for block in blocks if block.provider == self.name])

    def _choose_sizes(self, blocks: list[Block]) -> None:
        larger = self.pool.allow_larger_shapes
        counts = filters.choose_counts(self.supply, self.request.shape, self.lineup, larger=larger)
        if isinstance(counts, Refusal):
            self.refusal = counts
        else:
            self.sizes = [_Size(count, self.asked, blocks) for count in counts]

    def judge(self, tier: CapacityType, offers: list[Offer]) -> None:
        """Add this entry's candidates in a tier, each judged."""
        can = self.supply.capabilities
        if self.refusal is not None or can is None:
            region = _whole(self.supply)
            shape, name = self.asked
            offers.append(
                Offer(len(offers), self.name, tier, region, (), shape, name, self.parameters, (), self.refusal)
            )
            return
        whole = filters.refuse_tier(can, self.lineup, tier)
        for region_set, place in self.places:
            for size in self.sizes:
                offers.append(self._judged(len(offers), tier, region_set, place, size, whole))

    def _judged(
        self, position: int, tier: CapacityType, region_set: RegionSet, place: str, size: _Size, whole: Refusal | None
    ) -> Offer:
        """The inner loop: filters are called only where a glance shows that they would speak."""
        stock = self.lineup.stock(tier, size.count, region_set.ids)
        sold = stock.sold
        refusal = whole
        if refusal is None and (not sold or not region_set.ids):
            refusal = filters.refuse_region(self.supply, region_set, stock)
        if refusal is None:
            refusal = self.policy
        if refusal is None and self.limit is not None and sold[0].total > self.limit:
            refusal = filters.refuse_price(stock, self.pool, self.request.budget_left)
        quotes = sold[:1]
        if refusal is None:
            walked = stock.within(self.limit)
            key = f"{self.name}/{size.named[1]}/{tier}/{place}" if self.picky else ""
            blocked = size.blockade.refusal(tier, place, self.now)
            stocked = walked or stock.within(self.pool.max_price_per_hour)[:1]
            if stocked and not walked:
                refusal = filters.refuse_budget(stocked[0].total, self.pool)
            elif blocked is not None or self.picky or not walked:
                refusal = filters.refuse_stock(walked, key, self.request, blocked)
            quotes = stocked or quotes
        return Offer(
            position,
            self.name,
            tier,
            region_set.label,
            region_set.ids,
            size.named[0],
            size.named[1],
            self.parameters,
            quotes,
            refusal,
        )


class _Size:
    """The shape at one accelerator count with its name, and the blocks that concern it."""

    __slots__ = ("blockade", "count", "named")

    def __init__(self, count: int, asked: tuple[Shape, str], blocks: list[Block]) -> None:
        self.count = count
        self.named = asked
        if count != asked[0].accelerator_count:
            larger = asked[0].model_copy(update={"accelerator_count": count})
            self.named = (larger, str(larger))
        self.blockade = Blockade(blocks, asked[0].accelerator, self.named[1])


def _whole(supply: ProviderSupply) -> str:
    """The region of the one verdict of an entry that is refused whole."""
    return ",".join(supply.entry.regions) or ANYWHERE


def _lower(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    return min((limit for limit in (one, other) if limit is not None), default=None)
