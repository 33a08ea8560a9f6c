"""A decision in lines: what the claim keeps, bounded, and what a person reads."""

from __future__ import annotations

from datetime import datetime

from nebula.placement.filters import usd
from nebula.placement.prices import price_age_note
from nebula.placement.verdict import Decision, Verdict

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
    age = price_age_note(offer, now)
    tail = f" [{age}]" if age else ""
    if offer.refusal is None:
        return f"{head}: rank {verdict.rank}{tail}"
    until = f" until {offer.refusal.frees_at:%Y-%m-%dT%H:%M:%SZ}" if offer.refusal.frees_at is not None else ""
    return f"{head}: {offer.refusal.reason}{until}: {offer.refusal.detail}{tail}"
