"""Ranking within one tier; a strategy never crosses tiers (docs/placement.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nebula.domain.nodepool import NodePool, Strategy
from nebula.placement.verdict import Offer


def rank(offers: Sequence[Offer], pool: NodePool, live: Mapping[str, int]) -> list[Offer]:
    """Admissible offers of one tier, best first; ties always fall to the walk's order, in which they come.

    ``live`` counts the pool's live claims per provider (only ``Weighted`` looks at it).
    """
    if pool.strategy is Strategy.LOWEST_PRICE:
        return sorted(offers, key=lambda offer: offer.quotes[0].total)
    if pool.strategy is Strategy.WEIGHTED:
        shortfall = shortfalls({offer.provider for offer in offers}, pool, live)
        return sorted(offers, key=lambda offer: -shortfall[offer.provider])
    return list(offers)


def shortfalls(providers: set[str], pool: NodePool, live: Mapping[str, int]) -> dict[str, int]:
    """How far each provider lies below its share, were one more placed among ``providers``.

    Only providers that could take the Pod share: a blocked one neither counts nor draws. In units
    of 1 / (sum of weights), so that whole numbers do. A missing weight counts as 1.
    """
    weights = dict.fromkeys(providers, 0)
    for entry in pool.providers:
        if entry.name in weights:
            weights[entry.name] += entry.weight or 1
    total = sum(weights.values())
    placed = sum(live.get(name, 0) for name in providers) + 1
    return {name: weight * placed - live.get(name, 0) * total for name, weight in weights.items()}
