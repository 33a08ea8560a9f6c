"""The walk: every candidate of a NodePool in its order, each filtered once (design §6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal

from nebula.domain.candidate import CapacityType, Shape, place_of
from nebula.domain.nodepool import NodePool
from nebula.placement import filters
from nebula.placement.blocklist import in_the_way, matches_shape
from nebula.placement.request import PlacementRequest, ProviderSupply
from nebula.placement.sizing import Quote
from nebula.placement.verdict import Offer, Refusal
from nebula.providers.base import RegionSet
from nebula.stores.blocks import Block


def walk(
    request: PlacementRequest,
    pool: NodePool,
    supplies: Sequence[ProviderSupply],
    blocks: Sequence[Block],
    now: datetime,
) -> Iterator[Offer]:
    """Tier, then provider, then region, then size; a candidate that the pool names twice counts once."""
    prepared = [_Entry(supply, request, pool, blocks, now) for supply in supplies]
    position = 0
    for tier in dict.fromkeys(pool.capacity_types):
        seen: set[tuple[str, str, str]] = set()
        for entry in prepared:
            for offer in entry.offers(tier, position, seen):
                yield offer
                position += 1


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
        self.policy = filters.refuse_policy(supply, pool, request)
        self.suffix = place_of("", supply.entry.parameters)
        self.refusal = filters.refuse_provider(supply)
        self.asked = (request.shape, str(request.shape))
        self.lineup = supply.catalogue.lineup(*self.asked)
        self.sizes: list[_Size] = []
        if self.refusal is None:
            self._choose_sizes([block for block in blocks if block.provider == self.name])

    def _choose_sizes(self, blocks: list[Block]) -> None:
        larger = self.pool.allow_larger_shapes
        counts = filters.choose_counts(self.supply, self.request.shape, self.lineup, larger=larger)
        if isinstance(counts, Refusal):
            self.refusal = counts
        else:
            self.sizes = [_Size(count, self.asked, blocks) for count in counts]

    def offers(self, tier: CapacityType, first: int, seen: set[tuple[str, str, str]]) -> Iterator[Offer]:
        """This entry's candidates in a tier, numbered from ``first``; ``seen`` spans the tier's entries."""
        can = self.supply.capabilities
        if self.refusal is not None or can is None:
            yield from self._refused_whole(tier, first, seen)
            return
        tier_refusal = filters.refuse_tier(can, self.lineup, tier)
        position = first
        for region_set in self.supply.region_sets:
            place = region_set.label + self.suffix
            for size in self.sizes:
                identity = (self.name, place, size.name)
                if identity in seen:
                    continue
                seen.add(identity)
                yield self._judge(tier, region_set, place, size, position, tier_refusal)
                position += 1

    def _refused_whole(self, tier: CapacityType, first: int, seen: set[tuple[str, str, str]]) -> Iterator[Offer]:
        """One verdict for an entry that cannot serve at all, whatever the region."""
        region = ",".join(self.supply.entry.regions) or "any"
        identity = (self.name, region + self.suffix, self.asked[1])
        if identity in seen:
            return
        seen.add(identity)
        yield self._offer(tier, RegionSet.model_construct(label=region, ids=()), self.asked, first, (), self.refusal)

    def _judge(
        self,
        tier: CapacityType,
        region_set: RegionSet,
        place: str,
        size: _Size,
        position: int,
        tier_refusal: Refusal | None,
    ) -> Offer:
        stock = self.lineup.stock(tier, size.count, region_set.ids)
        refusal = (
            tier_refusal
            or filters.refuse_region(self.supply, region_set, stock)
            or self.policy
            or filters.refuse_price(stock, self.pool, self.request.budget_left)
        )
        quotes: tuple[Quote, ...] = stock.sold[:1]
        if refusal is None:
            walked = stock.within(self.limit)
            key = f"{self.name}/{size.name}/{tier}/{place}"
            blocks = in_the_way(size.blocks, tier, place) if size.blocks else size.blocks
            refusal = filters.refuse_stock(walked, key, self.request, blocks, self.now)
            quotes = walked or quotes
        return self._offer(tier, region_set, (size.shape, size.name), position, quotes, refusal)

    def _offer(
        self,
        tier: CapacityType,
        region_set: RegionSet,
        shape: tuple[Shape, str],
        position: int,
        quotes: tuple[Quote, ...],
        refusal: Refusal | None,
    ) -> Offer:
        return Offer(
            position=position,
            provider=self.name,
            capacity_type=tier,
            region=region_set.label,
            regions=region_set.ids,
            shape=shape[0],
            shape_name=shape[1],
            parameters=self.supply.entry.parameters,
            quotes=quotes,
            refusal=refusal,
        )


class _Size:
    """The shape at one accelerator count, and the blocks that concern it."""

    __slots__ = ("blocks", "count", "name", "shape")

    def __init__(self, count: int, asked: tuple[Shape, str], blocks: list[Block]) -> None:
        self.count = count
        self.shape, self.name = asked
        if count != self.shape.accelerator_count:
            self.shape = self.shape.model_copy(update={"accelerator_count": count})
            self.name = str(self.shape)
        self.blocks = [block for block in blocks if matches_shape(block, self.shape.accelerator, self.name)]


def _lower(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    return min((limit for limit in (one, other) if limit is not None), default=None)
