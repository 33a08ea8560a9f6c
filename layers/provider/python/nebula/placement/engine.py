"""The decision: walk every candidate, filter, rank, and account for each one not taken (docs/placement.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import attrgetter

from nebula.domain.nodepool import NodePool
from nebula.placement import deferral, filters
from nebula.placement.prices import price_age_note
from nebula.placement.ranking import rank
from nebula.placement.request import PlacementRequest, ProviderSupply
from nebula.placement.verdict import ORDER, Decision, Offer, Reason
from nebula.placement.walk import walk
from nebula.stores.blocks import Block

PLACED = "Placed"


def decide(
    request: PlacementRequest,
    pool: NodePool,
    supplies: Sequence[ProviderSupply],
    blocks: Iterable[Block],
    live_claims_per_provider: Mapping[str, int],
    now: datetime,
) -> Decision:
    """Choose the best admissible candidate of the first tier that has one, or defer.

    ``supplies`` holds one entry per ``pool.providers``, in that order. Deterministic: the same data
    and ``now`` give the same decision. Raises nothing.
    """
    offers = tuple(walk(request, pool, supplies, list(blocks), now))
    admissible = [offer for offer in offers if offer.refusal is None]
    tiers = groupby(admissible, key=attrgetter("capacity_type"))
    ranked = [offer for _, tier in tiers for offer in rank(list(tier), pool, live_claims_per_provider)]
    if not ranked:
        return _defer(request, pool, offers, now)
    positions = tuple(offer.position for offer in ranked)
    return Decision(ranked[0].candidate(), offers, positions, None, PLACED, describe(ranked[0], now))


def describe(offer: Offer, now: datetime) -> str:
    """One line on an admissible offer: what, where, for how much, and whether its price is old."""
    first = offer.quotes[0]
    age = price_age_note(offer, now)
    return (
        f"{offer.shape.spoken()} on {offer.provider} ({first.instance_type}), {offer.capacity_type}, "
        f"region {offer.region}, {filters.usd(first.total)}{f' ({age})' if age else ''}"
    )


def _defer(request: PlacementRequest, pool: NodePool, offers: tuple[Offer, ...], now: datetime) -> Decision:
    refusals = [(offer, offer.refusal) for offer in offers if offer.refusal is not None]
    counts = Counter(refusal.reason for _, refusal in refusals)
    nearest = max(counts, key=lambda reason: ORDER[reason], default=Reason.PROVIDER_UNCONFIGURED)
    again = deferral.retry_at(
        (refusal.frees_at for _, refusal in refusals if refusal.frees_at is not None),
        claim_id=request.claim_id,
        ttl=pool.failover.blocklist_ttl,
        waiting_since=request.waiting_since,
        now=now,
    )
    examples: dict[Reason, str] = {}
    for offer, refusal in refusals:
        examples.setdefault(refusal.reason, f"{offer.provider}, {refusal.detail}")
    told = "; ".join(
        f"{reason} {counts[reason]}: {example}"
        for reason, example in sorted(examples.items(), key=lambda item: -ORDER[item[0]])
    )
    message = f"none of {len(offers)} candidates for {request.shape.spoken()} can be taken now. {told}"
    return Decision(None, offers, (), again, str(nearest), message)
