"""Reading single instances where a listing broke off.

A provider whose list fails on a later page, for minutes or hours, must not keep every delete unconfirmed: after
an accepted delete one "not found" or terminal state by id is proof enough. Such reads are few per look, so
that a provider in trouble is not asked once per claim.
"""

from __future__ import annotations

from collections import Counter
from threading import Lock

from nebula.domain.claim import Attempt, Claim, Phase
from nebula.domain.instance import InstanceListing
from nebula.providers.errors import ProviderError
from nebula.workflows.services import Services
from nebula.workflows.views import ProviderView

#: Reads by id per provider and look. Claims are judged from another place each time, so everybody has a turn.
READS_PER_LOOK = 20
_ENDING = frozenset({Phase.WITHDRAWING, Phase.TERMINATING})


class ReadsById:
    """The reads of one look. Safe to share between threads."""

    def __init__(self, services: Services, limit: int = READS_PER_LOOK) -> None:
        self._services = services
        self._limit = limit
        self._lock = Lock()
        self._used: Counter[str] = Counter()

    def listing_for(self, claim: Claim, view: ProviderView) -> InstanceListing:
        """What is to be judged: the view's listing, or a read by id where only that can confirm a delete."""
        listing = view.listing_for(claim)
        attempt = claim.attempts[-1]
        if not _owed(claim, attempt, listing) or attempt.account in view.strangers:
            return listing
        if not self._take(view.provider.name):
            return listing
        asked_at = self._services.clock.now()
        try:
            found = view.provider.get(str(attempt.instance_id))
        except ProviderError as error:
            self._services.telemetry.warning("end not confirmed by id", claim_id=claim.claim_id, error=str(error))
            return listing
        return InstanceListing(
            began_at=asked_at,
            instances=() if found is None else (found,),
            complete_scopes=frozenset({attempt.scope or ""}),
        )

    def _take(self, provider: str) -> bool:
        with self._lock:
            self._used[provider] += 1
            return self._used[provider] <= self._limit


def _owed(claim: Claim, attempt: Attempt, listing: InstanceListing) -> bool:
    """Whether the listing leaves open what became of an accepted delete."""
    deleted = claim.phase in _ENDING and claim.unconfirmed == (attempt,) and attempt.delete_accepted_at is not None
    if not deleted or attempt.instance_id is None or attempt.instance_id in listing.by_id:
        return False
    return not listing.is_complete(attempt.scope)
