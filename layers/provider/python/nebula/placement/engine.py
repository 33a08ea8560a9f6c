"""The decision: walk every candidate, filter, rank, and account for each one not taken (design §6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from nebula.domain.nodepool import NodePool
from nebula.placement import deferral, filters
from nebula.placement.ranking import rank
from nebula.placement.request import PlacementRequest, ProviderSupply
from nebula.placement.verdict import ORDER, Decision, Offer, Reason, Verdict
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
    ranked: list[Offer] = []
    for tier in dict.fromkeys(pool.capacity_types):
        admissible = [offer for offer in offers if offer.refusal is None and offer.capacity_type is tier]
        ranked += rank(admissible, pool, live_claims_per_provider)
    places = {offer.position: number for number, offer in enumerate(ranked, start=1)}
    verdicts = tuple(Verdict(offer, places.get(offer.position)) for offer in offers)
    if ranked:
        return Decision(ranked[0].candidate(), verdicts, None, PLACED, describe(ranked[0]))
    return _defer(request, pool, verdicts, now)


def describe(offer: Offer) -> str:
    """One stable line on an admissible offer: what, where, for how much."""
    first = offer.quotes[0]
    return (
        f"{offer.shape_name} on {offer.provider} ({first.instance_type}), {offer.capacity_type}, "
        f"region {offer.region}, {filters.usd(first.total)}"
    )


def _defer(request: PlacementRequest, pool: NodePool, verdicts: tuple[Verdict, ...], now: datetime) -> Decision:
    refusals = [verdict.offer.refusal for verdict in verdicts if verdict.offer.refusal is not None]
    counts = Counter(refusal.reason for refusal in refusals)
    nearest = max(counts, key=lambda reason: ORDER[reason], default=Reason.PROVIDER_UNCONFIGURED)
    again = deferral.retry_at(
        (refusal.frees_at for refusal in refusals if refusal.frees_at is not None),
        claim_id=request.claim_id,
        ttl=pool.failover.blocklist_ttl,
        waiting_since=request.waiting_since,
        now=now,
    )
    told = "; ".join(
        f"{reason} {count}: {_example(verdicts, reason)}"
        for reason, count in sorted(counts.items(), key=lambda item: -ORDER[item[0]])
    )
    message = f"none of {len(verdicts)} candidates for {request.shape} can be taken now. {told}"
    return Decision(None, verdicts, again, str(nearest), message)


def _example(verdicts: tuple[Verdict, ...], reason: Reason) -> str:
    return next(
        f"{v.offer.provider}, {v.offer.refusal.detail}"
        for v in verdicts
        if v.offer.refusal is not None and v.offer.refusal.reason is reason
    )
