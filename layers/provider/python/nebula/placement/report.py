"""A decision in lines: what the claim keeps, bounded, and what a person reads."""

from __future__ import annotations

from datetime import datetime

from nebula.placement.filters import usd
from nebula.placement.verdict import Decision, Verdict

OLD_DAYS = 60
"""A price older than this many days is used all the same, but the decision says so."""

MAX_LINES = 20
MAX_LINE_LENGTH = 200


def decision_lines(decision: Decision, now: datetime) -> tuple[str, ...]:
    """One line per candidate not taken, the best first, at most ``MAX_LINES`` (the last says how many more)."""
    passed_over = sorted(
        (verdict for verdict in decision.verdicts if verdict.rank != 1),
        key=lambda v: (v.rank is None, v.rank or 0, v.offer.position),
    )
    lines = [verdict_line(verdict, now)[:MAX_LINE_LENGTH] for verdict in passed_over[:MAX_LINES]]
    if len(passed_over) > MAX_LINES:
        lines[-1] = f"and {len(passed_over) - MAX_LINES + 1} more"
    return tuple(lines)


def verdict_line(verdict: Verdict, now: datetime) -> str:
    """One candidate: what, where, for how much, and why not (or its rank)."""
    offer = verdict.offer
    price = f" {usd(offer.quotes[0].total)}" if offer.quotes else ""
    head = f"{offer.provider} {offer.shape_name} {offer.capacity_type} {offer.region}{price}"
    age = price_age_note(verdict, now)
    tail = f" [{age}]" if age else ""
    if offer.refusal is None:
        return f"{head}: rank {verdict.rank}{tail}"
    until = f" until {offer.refusal.frees_at:%Y-%m-%dT%H:%M:%SZ}" if offer.refusal.frees_at is not None else ""
    return f"{head}: {offer.refusal.reason}{until}: {offer.refusal.detail}{tail}"


def price_age_note(verdict: Verdict, now: datetime) -> str:
    """``price is 74 days old`` when it is older than ``OLD_DAYS``, else nothing."""
    if not verdict.offer.quotes:
        return ""
    days = age_days(verdict.offer.quotes[0].as_of, now)
    return f"price is {days} days old" if days > OLD_DAYS else ""


def age_days(as_of: datetime, now: datetime) -> int:
    """Whole days since a price was true; 0 for one dated ahead."""
    return max((now - as_of).days, 0)
