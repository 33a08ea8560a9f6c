"""When a deferred claim is looked at again: the only retry timer there is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime, timedelta

SHORTEST = timedelta(seconds=30)
LONGEST = timedelta(minutes=5)


def jitter(claim_id: str, up_to: timedelta) -> timedelta:
    """A fraction of ``up_to`` that is always the same for one claim, so that Pods do not return in lockstep."""
    digest = hashlib.sha256(claim_id.encode()).digest()
    return up_to * (int.from_bytes(digest[:4], "big") / 2**32)


def backoff(waiting_since: datetime | None, now: datetime) -> timedelta:
    """30 s at first, then half of the time already waited, at most 5 min.

    Growing with the wait needs no counter: the ledger already knows since when the claim waits.
    """
    waited = now - waiting_since if waiting_since is not None else timedelta(0)
    return min(max(waited / 2, SHORTEST), LONGEST)


def retry_at(
    frees: Iterable[datetime], *, claim_id: str, ttl: timedelta, waiting_since: datetime | None, now: datetime
) -> datetime:
    """The soonest block expiry plus the claim's jitter (up to ``ttl``, at most ``LONGEST``), else the back-off.

    A pool that remembers refusals for days must not let a Pod sleep for days behind a pause of seconds. A block
    that outlasts the longest back-off is not waited for: a person may have mended the cause.
    """
    soonest = min(frees, default=None)
    if soonest is not None and soonest <= now + LONGEST:
        return max(soonest, now) + jitter(claim_id, min(ttl, LONGEST))
    return now + backoff(waiting_since, now) + jitter(claim_id, SHORTEST / 3)
