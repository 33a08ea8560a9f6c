"""What placement says of itself. Dimensions are bounded: a provider's name, or one of the closed reasons."""

from __future__ import annotations

from datetime import datetime

from nebula.domain.claim import Claim
from nebula.observability import Telemetry
from nebula.placement.verdict import Decision


def measure_decision(telemetry: Telemetry, decision: Decision, claim: Claim, now: datetime) -> None:
    """Count one decision: placed or deferred, what was passed over, the wait, the price against the cheapest.

    ``PlacementWait`` is seconds from the Pod's creation to its first placement. Prices are USD per hour;
    ``PlacementPriceCheapest`` is the lowest at which anything fitting is sold at all, in stock or not.
    """
    for reason, count in decision.skips().items():
        telemetry.count("PlacementSkips", count, reason=str(reason))
    chosen = decision.candidate
    if chosen is None:
        telemetry.count("PlacementDeferrals", reason=decision.reason)
        return
    telemetry.count("PlacementDecisions", provider=chosen.provider)
    telemetry.count("PlacementPriceChosen", float(chosen.price.total), unit="None", provider=chosen.provider)
    telemetry.count("PlacementPriceCheapest", float(decision.cheapest() or 0), unit="None", provider=chosen.provider)
    if claim.pod_created_at is not None and not claim.attempts:
        waited = (now - claim.pod_created_at).total_seconds()
        telemetry.count("PlacementWait", max(waited, 0), unit="Seconds")
