"""Cursor pages to one listing that knows whether it is complete.

RunPod's published document has no pages; newer answers carry ``pagination {nextCursor, hasNextPage}``.
A page may be shorter than the limit while more follow: only ``pagination`` tells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from nebula.providers.errors import ProviderError, ProviderUnavailableError

MAX_PAGES = 500


@dataclass(frozen=True)
class Listing:
    """Items by id in the order given; ``problem`` says why the listing is not complete, empty when it is."""

    began_at: datetime
    items: dict[str, dict[str, Any]] = field(default_factory=dict)
    problem: str = ""

    @property
    def complete(self) -> bool:
        """Whether every page was read and understood."""
        return not self.problem


def collect(
    fetch: Callable[[str | None], dict[str, Any]], member: str, began_at: datetime, *, need_ids: bool
) -> Listing:
    """Read pages until the last one. Raises what the first ``fetch`` raises.

    A later failure, a repeated or missing cursor, with ``need_ids`` an item without an id: the listing
    is incomplete and says so. It is never cut short in silence.
    """
    listing = Listing(began_at)
    cursor: str | None = None
    seen: set[str] = set()
    for number in range(MAX_PAGES):
        try:
            page = fetch(cursor)
        except ProviderError as error:
            if number == 0:
                raise
            return Listing(began_at, listing.items, f"page {number + 1}: {error}")
        problem = _take(page, member, listing.items, need_ids)
        if problem and number == 0 and not listing.items:
            raise ProviderUnavailableError(f"listing {member}: {problem}", code="200")
        if problem:
            return Listing(began_at, listing.items, f"page {number + 1}: {problem}")
        cursor, problem = _next(page)
        if problem or cursor is None:
            return Listing(began_at, listing.items, problem)
        if cursor in seen:
            return Listing(began_at, listing.items, f"page {number + 1} repeats a cursor")
        seen.add(cursor)
    return Listing(began_at, listing.items, f"more than {MAX_PAGES} pages")


def _take(page: dict[str, Any], member: str, items: dict[str, dict[str, Any]], need_ids: bool) -> str:
    """Add a page's items; the problem in words, empty when there is none."""
    found = page.get(member)
    if not isinstance(found, list):
        return f"no list of {member}"
    unreadable = 0
    for item in found:
        identity = item.get("id") if isinstance(item, dict) else None
        if isinstance(identity, str) and identity:
            items.setdefault(identity, item)
        else:
            unreadable += 1
    return f"{unreadable} of {len(found)} {member} without an id" if unreadable and need_ids else ""


def _next(page: dict[str, Any]) -> tuple[str | None, str]:
    """The next cursor (None: this was the last page) and what is wrong with the page's ``pagination``."""
    pagination = page.get("pagination")
    if pagination is None:
        return None, ""
    if not isinstance(pagination, dict):
        return None, "pagination is not an object"
    cursor = pagination.get("nextCursor")
    more = pagination.get("hasNextPage", cursor is not None)
    if more is False:
        return None, ""
    if more is not True:
        return None, "hasNextPage is not true or false"
    if not isinstance(cursor, str) or not cursor:
        return None, "more pages, but no cursor"
    return cursor, ""
