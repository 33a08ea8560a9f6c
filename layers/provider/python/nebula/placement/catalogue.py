"""A provider's offerings, arranged so that a decision only looks things up.

A warm process decides for many Pods on one price list and few shapes, so what depends only on the
list and the shape is worked out once and kept with the list.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from nebula.domain.candidate import CapacityType, Shape
from nebula.domain.offering import Offering
from nebula.placement.sizing import Quote, counts_of, quote

MAX_SHAPES = 256
"""Arranged shapes that one catalogue keeps; odd requests must not fill the memory."""

MAX_INSTANCE_TYPES = 10
"""Most provider ids walked inside one create call: bounded tries, cheapest first."""


@dataclass(frozen=True, slots=True)
class Stock:
    """What one provider sells of one shape in one tier and region set, cheapest first.

    ``cheapest`` holds the first of them, or nothing. ``walked`` leaves out what the provider says it has none of now,
    and is at most ``MAX_INSTANCE_TYPES`` long.
    """

    sold: tuple[Quote, ...]
    cheapest: tuple[Quote, ...]
    walked: tuple[Quote, ...]

    def within(self, limit: Decimal | None) -> tuple[Quote, ...]:
        """The available quotes at or under ``limit`` USD per hour, at most ``MAX_INSTANCE_TYPES``."""
        found = self.walked
        if limit is not None and found and found[-1].total > limit:
            return found[: bisect_right(found, limit, key=lambda offer: offer.total)]
        return found


class Shelf(dict[tuple[str, ...], Stock]):
    """What is sold of one shape in one tier, by region set (the provider's ids; empty = anywhere).

    Worked out when a region set is first asked for; a plain look-up from then on.
    """

    def __init__(self, quotes: tuple[Quote, ...] = ()) -> None:
        super().__init__()
        self._quotes = quotes

    def __missing__(self, regions: tuple[str, ...]) -> Stock:
        """Gather what is sold in any of the regions."""
        wanted = frozenset(regions)
        sold = tuple(offer for offer in self._quotes if offer.sold_in(wanted))
        available = tuple(offer for offer in sold if offer.available_in(wanted))
        found = Stock(sold, cheapest=sold[:1], walked=available[:MAX_INSTANCE_TYPES])
        self[regions] = found
        return found


@dataclass(slots=True)
class Lineup:
    """Everything of one catalogue that serves one shape.

    ``counts`` are the accelerator counts it comes in, ascending: the exact one where it exists, then
    larger ones (only 0 for CPU-only).
    """

    counts: tuple[int, ...]
    tiers: frozenset[CapacityType]
    shelves: dict[tuple[CapacityType, int], Shelf]

    def shelf(self, tier: CapacityType, count: int) -> Shelf:
        """What is sold in a tier with so many accelerators; an empty one where nothing is."""
        found = self.shelves.get((tier, count))
        if found is None:
            found = self.shelves[tier, count] = Shelf()
        return found


class Catalogue:
    """A provider's offerings by accelerator; immutable to its users."""

    def __init__(self, offerings: Iterable[Offering]) -> None:
        self._by_accelerator: dict[str | None, list[Offering]] = {}
        for offering in offerings:
            self._by_accelerator.setdefault(_canonical(offering.accelerator), []).append(offering)
        self._lineups: dict[str, Lineup] = {}

    def sells(self, accelerator: str | None) -> bool:
        """Whether anything with this accelerator type (None: CPU-only) is on the list at all."""
        return _canonical(accelerator) in self._by_accelerator

    def similar(self, accelerator: str) -> tuple[str, ...]:
        """Accelerator types on the list that begin with the one asked for, for a helpful refusal."""
        wanted = accelerator.upper()
        return tuple(sorted(name for name in self._by_accelerator if name and name.startswith(wanted)))

    def lineup(self, shape: Shape, name: str) -> Lineup:
        """What serves a shape; ``name`` is ``str(shape)``, which the caller has at hand."""
        found = self._lineups.get(name)
        if found is None:
            if len(self._lineups) >= MAX_SHAPES:
                self._lineups.clear()
            found = _arrange(self._by_accelerator.get(_canonical(shape.accelerator), ()), shape)
            self._lineups[name] = found
        return found


def _canonical(accelerator: str | None) -> str | None:
    return accelerator.upper() if accelerator else None


def _arrange(offerings: Sequence[Offering], shape: Shape) -> Lineup:
    quotes: dict[tuple[CapacityType, int], list[Quote]] = {}
    for offering in offerings:
        for count in counts_of(offering, shape):
            offer = quote(offering, shape, count)
            if offer is not None:
                quotes.setdefault((offering.capacity_type, count), []).append(offer)
    return Lineup(
        counts=tuple(sorted({count for _, count in quotes})),
        tiers=frozenset(tier for tier, _ in quotes),
        shelves={
            key: Shelf(tuple(sorted(found, key=lambda q: (q.total, q.instance_type)))) for key, found in quotes.items()
        },
    )
