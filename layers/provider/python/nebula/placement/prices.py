"""How old a price is, and when that has to be said. Pure."""

from __future__ import annotations

from datetime import datetime

from nebula.placement.verdict import Offer

OLD_DAYS = 60
"""A price older than this many days is used all the same, but the decision says so."""


def age_days(as_of: datetime, now: datetime) -> int:
    """Whole days since a price was true; 0 for one dated ahead."""
    return max((now - as_of).days, 0)


def price_age_note(offer: Offer, now: datetime) -> str:
    """``price is 74 days old`` when it is older than ``OLD_DAYS``, else nothing."""
    if not offer.quotes:
        return ""
    days = age_days(offer.quotes[0].as_of, now)
    return f"price is {days} days old" if days > OLD_DAYS else ""
