"""A decision as plain data, complete: every candidate, its price in parts, its verdict (docs/placement.md). Pure.

The shape of this answer is the contract of ``explain --output json`` and of the ``Explain`` event;
money is text in USD per hour, times are ISO 8601 in UTC.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from nebula.placement.prices import OLD_DAYS, age_days
from nebula.placement.sizing import Quote
from nebula.placement.verdict import Decision, Offer, Verdict


def explanation(decision: Decision, now: datetime) -> dict[str, Any]:
    """The decision with its candidates: admissible ones by rank, then the refused in the order of the walk."""
    verdicts = sorted(decision.verdicts, key=lambda v: (v.rank is None, v.rank or 0, v.offer.position))
    return {
        "decided_at": _time(now),
        "placed": decision.candidate is not None,
        "reason": decision.reason,
        "message": decision.message,
        "retry_at": _time(decision.retry_at),
        "candidates": [_candidate(verdict, now) for verdict in verdicts],
    }


def _candidate(verdict: Verdict, now: datetime) -> dict[str, Any]:
    offer, refusal = verdict.offer, verdict.refusal
    return {
        "rank": verdict.rank,
        "verdict": _word(verdict),
        "reason": None if refusal is None else str(refusal.reason),
        "detail": "" if refusal is None else refusal.detail,
        "frees_at": None if refusal is None else _time(refusal.frees_at),
        "provider": offer.provider,
        "instance_types": [quote.instance_type for quote in offer.quotes],
        "capacity_type": str(offer.capacity_type),
        "region": offer.region,
        "regions": list(offer.regions),
        "shape": offer.shape_name,
        "parameters": dict(offer.parameters),
        "price_per_hour": _price(offer.quotes[0], now) if offer.quotes else None,
        "reserve_per_hour": _reserve(offer),
    }


def _word(verdict: Verdict) -> str:
    if verdict.rank is None:
        return "refused"
    return "chosen" if verdict.rank == 1 else "admissible"


def _price(quote: Quote, now: datetime) -> dict[str, Any]:
    days = age_days(quote.as_of, now)
    return {
        "total": money(quote.total),
        "gpus": money(quote.gpus),
        "cpu": money(quote.cpu),
        "disk": money(quote.disk),
        "source": quote.source,
        "as_of": _time(quote.as_of),
        "age_days": days,
        "old": days > OLD_DAYS,
    }


def _reserve(offer: Offer) -> str | None:
    return money(offer.quotes[-1].total) if offer.quotes and offer.refusal is None else None


def money(amount: Decimal) -> str:
    """USD per hour with four decimals at most, two at least."""
    text = f"{amount:.4f}".rstrip("0")
    whole, _, decimals = text.partition(".")
    return f"{whole}.{decimals.ljust(2, '0')}"


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ")
