"""What a decision says: one verdict per candidate, and the closed set of reasons (docs/placement.md)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

from nebula.domain.candidate import Candidate, CapacityType, Shape, place_of
from nebula.placement.sizing import Quote


class Reason(StrEnum):
    """Why a candidate is not taken, in the order in which it is tested.

    A later reason means that the candidate came nearer: the last one reached by any candidate is
    what stands between the Pod and a machine.
    """

    PROVIDER_UNCONFIGURED = "provider_unconfigured"
    ACCELERATOR_UNSUPPORTED = "accelerator_unsupported"
    CPU_ONLY_UNSUPPORTED = "cpu_only_unsupported"
    CAPACITY_TYPE_UNSUPPORTED = "capacity_type_unsupported"
    REGION_UNSUPPORTED = "region_unsupported"
    EGRESS_UNSUPPORTED = "egress_unsupported"
    INGRESS_UNSUPPORTED = "ingress_unsupported"
    INGRESS_AUTHENTICATION_UNSUPPORTED = "ingress_authentication_unsupported"
    EXIT_CODE_UNSUPPORTED = "exit_code_unsupported"
    NODE_NOT_READY = "node_not_ready"
    NODE_UNSUITABLE = "node_unsuitable"
    PRICE_ABOVE_MAXIMUM = "price_above_maximum"
    BUDGET_EXHAUSTED = "budget_exhausted"
    UNAVAILABLE = "unavailable"
    BLOCKED = "blocked"
    RATE_LIMITED = "rate_limited"
    EXCLUDED = "excluded"


ORDER = {reason: number for number, reason in enumerate(Reason)}


class Refusal(NamedTuple):
    """Why not: the reason, one readable line, and when it frees if that is known."""

    reason: Reason
    detail: str
    frees_at: datetime | None = None


class Offer(NamedTuple):
    """One candidate as considered, before it is ranked. A tuple, because a decision makes hundreds.

    ``quotes`` are the instance types to walk, cheapest first; for a refused candidate the cheapest that is sold (in
    stock, where only the budget refuses it), for information, or nothing when none is. ``position`` is its place in
    the walk.
    """

    position: int
    provider: str
    capacity_type: CapacityType
    region: str
    regions: tuple[str, ...]
    shape: Shape
    shape_name: str
    parameters: dict[str, str]
    quotes: tuple[Quote, ...] = ()
    refusal: Refusal | None = None

    @property
    def key(self) -> str:
        """The same identity as ``Candidate.key``."""
        return f"{self.provider}/{self.shape_name}/{self.capacity_type}/{place_of(self.region, self.parameters)}"

    @property
    def price(self) -> Decimal | None:
        """USD per hour of the cheapest instance type, None when nothing is sold."""
        return self.quotes[0].total if self.quotes else None

    def candidate(self) -> Candidate:
        """The candidate as the ledger keeps it; only for an offer that was not refused."""
        return Candidate(
            provider=self.provider,
            regions=self.regions,
            region=self.region,
            capacity_type=self.capacity_type,
            shape=self.shape,
            instance_types=tuple(dict.fromkeys(quote.instance_type for quote in self.quotes)),
            price=self.quotes[0].price(),
            reserve_per_hour=self.quotes[-1].total,
            parameters=self.parameters,
        )


class Verdict(NamedTuple):
    """An offer and its fate: ``rank`` 1 is the choice, later numbers would follow, None is refused."""

    offer: Offer
    rank: int | None

    @property
    def refusal(self) -> Refusal | None:
        """Why it was refused; None for an admissible candidate."""
        return self.offer.refusal


@dataclass(frozen=True, slots=True)
class Decision:
    """A choice or a deferral, with every candidate considered.

    ``offers`` are in the order of the walk, ``ranked`` the positions of the admissible ones, best
    first. ``retry_at`` is set only by a deferral. ``reason`` is ``Placed`` or a ``Reason``; ``message``
    is stable while the situation is (it names no time), so that it can be compared with what the Pod
    shows.
    """

    candidate: Candidate | None
    offers: tuple[Offer, ...]
    ranked: tuple[int, ...]
    retry_at: datetime | None
    reason: str
    message: str

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """One verdict per candidate, in the order of the walk."""
        ranks = {position: number for number, position in enumerate(self.ranked, start=1)}
        return tuple(Verdict(offer, ranks.get(offer.position)) for offer in self.offers)

    def skips(self) -> Counter[Reason]:
        """How many candidates each reason refused."""
        return Counter(offer.refusal.reason for offer in self.offers if offer.refusal is not None)

    def cheapest(self) -> Decimal | None:
        """The lowest price among all candidates that are sold at all, taken or not, USD per hour."""
        return min((offer.quotes[0].total for offer in self.offers if offer.quotes), default=None)

    def wanted_per_hour(self) -> Decimal | None:
        """The lowest price that only the budget refused, USD per hour: what has to be freed for this Pod."""
        return min(
            (
                offer.quotes[0].total
                for offer in self.offers
                if offer.refusal is not None and offer.refusal.reason is Reason.BUDGET_EXHAUSTED and offer.quotes
            ),
            default=None,
        )
