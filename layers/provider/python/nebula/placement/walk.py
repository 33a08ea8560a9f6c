"""The walk: every candidate of a NodePool in its order, each filtered once (docs/placement.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from nebula.domain.candidate import CapacityType, Shape, place_of
from nebula.domain.nodepool import NodePool
from nebula.placement import filters
from nebula.placement.blocklist import Fence, matches_shape
from nebula.placement.catalogue import Stock
from nebula.placement.request import PlacementRequest, ProviderSupply
from nebula.placement.sizing import Quote
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
    name = str(request.shape)
    entries = [_Entry(supply, request, name, pool, blocks, now) for supply in _distinct(supplies)]
    offers: list[Offer] = []
    for tier in dict.fromkeys(pool.capacity_types):
        for entry in entries:
            entry.judge(tier, offers)
    return offers


def _distinct(supplies: Sequence[ProviderSupply]) -> list[ProviderSupply]:
    """Supplies without the regions that an earlier entry of the same provider and parameters has."""
    seen: dict[tuple[str, str], set[str]] = {}
    found = []
    for supply in supplies:
        taken = seen.setdefault((supply.name, place_of("", supply.entry.parameters)), set())
        labels = [region_set.label for region_set in supply.region_sets] or [_whole(supply)]
        fresh = set(labels) - taken
        taken |= fresh
        if len(fresh) == len(labels):
            found.append(supply)
        elif fresh:
            kept = {region_set.label: region_set for region_set in supply.region_sets if region_set.label in fresh}
            found.append(replace(supply, region_sets=tuple(kept.values())))
    return found


class _Size(NamedTuple):
    """The shape at one accelerator count with its name, and the provider's blocks that cover it."""

    accelerators: int
    shape: Shape
    name: str
    blocks: list[Block]


def _size(count: int, asked: tuple[Shape, str], blocks: list[Block]) -> _Size:
    shape, name = asked
    if count != shape.accelerator_count:
        shape = shape.model_copy(update={"accelerator_count": count})
        name = str(shape)
    covering = [block for block in blocks if matches_shape(block, shape.accelerator, name)]
    return _Size(count, shape, name, covering)


class _Entry:
    """One provider entry within one decision, with what its candidates share worked out once."""

    def __init__(
        self,
        supply: ProviderSupply,
        request: PlacementRequest,
        shape_name: str,
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
        self.asked = (request.shape, shape_name)
        self.lineup = supply.catalogue.lineup(request.shape, shape_name)
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
            self.sizes = [_size(count, self.asked, blocks) for count in counts]

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
        shelves = [
            (shape, name, self.lineup.shelf(tier, accelerators), Fence(blocks, tier) if blocks else None)
            for accelerators, shape, name, blocks in self.sizes
        ]
        whole = filters.refuse_tier(can, self.lineup, tier)
        open_to_all = whole is None and self.policy is None
        name, limit, parameters = self.name, self.limit, self.parameters
        for region_set, place in self.places:
            label, ids = region_set.label, region_set.ids
            for shape, shape_name, shelf, fence in shelves:
                stock = shelf[ids]
                quotes = stock.cheapest
                refusal = None
                # A glance first: most candidates fail none of the filters behind it.
                if not (open_to_all and ids and quotes and (limit is None or quotes[0].total <= limit)):
                    refusal = whole or self._refusal(region_set, stock)
                if refusal is None:
                    refusal, quotes = self._at_the_moment(tier, place, shape_name, stock, fence)
                offers.append(
                    Offer(len(offers), name, tier, label, ids, shape, shape_name, parameters, quotes, refusal)
                )

    def _refusal(self, region_set: RegionSet, stock: Stock) -> Refusal | None:
        """What neither stock nor blocks have to do with."""
        refusal = filters.refuse_region(self.supply, region_set, stock) or self.policy
        if refusal is None and self.limit is not None and stock.sold[0].total > self.limit:
            refusal = filters.refuse_price(stock, self.pool, self.request.budget_left)
        return refusal

    def _at_the_moment(
        self, tier: CapacityType, place: str, name: str, stock: Stock, fence: Fence | None
    ) -> tuple[Refusal | None, tuple[Quote, ...]]:
        """What stock, blocks and the ledger say now, and the instance types to walk."""
        walked = stock.within(self.limit)
        blocked = None if fence is None else fence.refusal(place, self.now)
        if walked and not self.picky:
            return blocked, walked
        stocked = walked or stock.within(self.pool.max_price_per_hour)[:1]
        if stocked and not walked:
            return filters.refuse_budget(stocked[0].total, self.pool), stocked
        key = f"{self.name}/{name}/{tier}/{place}" if self.picky else ""
        return filters.refuse_stock(walked, key, self.request, blocked), stocked or stock.cheapest


def _whole(supply: ProviderSupply) -> str:
    """The region of the one verdict of an entry that is refused whole."""
    return ",".join(supply.entry.regions) or ANYWHERE


def _lower(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    return min((limit for limit in (one, other) if limit is not None), default=None)
