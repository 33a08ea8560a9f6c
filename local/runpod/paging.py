"""Cursor pages as newer RunPod answers have them, and the ways in which they may be odd."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local.runpod.wire import ProblemError

MOST = 1000


@dataclass
class PageStyle:
    """How lists are cut.

    ``mode``: ``cursor``; ``none`` (everything at once, no ``pagination``, as the published document
    has it); ``repeat`` (the cursor of the first page comes again and again); ``lost`` (more pages are
    said to follow, without a cursor). ``at_most`` cuts pages shorter than asked for.
    """

    mode: str = "cursor"
    at_most: int = MOST


def cut(rows: Sequence[dict[str, Any]], member: str, query: Mapping[str, str], style: PageStyle) -> dict[str, Any]:
    """One page of ``rows`` (in their order, which must have ``id``)."""
    if style.mode == "none":
        return {member: list(rows)}
    limit = _limit(query.get("limit"))
    start = _start(rows, query.get("cursor"), limit)
    page = list(rows[start : start + min(limit, style.at_most)])
    more = start + len(page) < len(rows)
    cursor = _cursor(page[-1]["id"], limit) if more else None
    if style.mode == "repeat" and rows:
        more, cursor = True, _cursor(rows[0]["id"], limit)
    if style.mode == "lost":
        more, cursor = True, None
    return {member: page, "pagination": {"nextCursor": cursor, "hasNextPage": more}}


def _limit(text: str | None) -> int:
    if text is None:
        return MOST
    if not text.isdigit() or not 1 <= int(text) <= MOST:
        raise ProblemError(422, "Request validation failed.", errors=["limit: value must be between 1 and 1000"])
    return int(text)


def _cursor(after: str, limit: int) -> str:
    return base64.urlsafe_b64encode(json.dumps([after, limit]).encode()).decode()


def _start(rows: Sequence[dict[str, Any]], cursor: str | None, limit: int) -> int:
    """Where the page begins. A cursor holds only for the parameters that it was issued for."""
    if cursor is None:
        return 0
    try:
        after, issued_for = json.loads(base64.urlsafe_b64decode(cursor))
    except (ValueError, TypeError):
        raise ProblemError(422, "invalid cursor") from None
    if issued_for != limit:
        raise ProblemError(422, "invalid cursor")
    position = next((number for number, row in enumerate(rows) if row["id"] == after), None)
    # A row that went away meanwhile: its place is lost, the real behaviour is unknown.
    return 0 if position is None else position + 1
