"""What the NodePools' budgets hold, counted from the claims themselves (docs/placement.md). Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal

from nebula.domain.claim import Claim, Phase
from nebula.domain.unreadable import UnreadableClaim


def committed(claims: Iterable[Claim], unreadable: Iterable[UnreadableClaim] = ()) -> dict[str, Decimal]:
    """USD per hour that each NodePool's claims hold: attempts not confirmed gone, and placed candidates.

    A claim that cannot be read holds what its writer counted, at least nothing.
    """
    held: dict[str, Decimal] = defaultdict(Decimal)
    for claim in claims:
        amount = claim.committed_per_hour
        if amount:
            held[claim.node_pool] += amount
    for row in unreadable:
        held[row.node_pool] += row.committed_per_hour or Decimal(0)
    return dict(held)


def instances(claims: Iterable[Claim]) -> dict[str, dict[str, int]]:
    """Instances that exist as far as the ledger knows, booting ones included: NodePool → provider → count."""
    found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for claim in claims:
        for attempt in claim.unconfirmed:
            if attempt.instance_id is not None:
                found[claim.node_pool][attempt.candidate.provider] += 1
    return {pool: dict(counts) for pool, counts in found.items()}


def that_fit(waiting: Iterable[Claim], left: Decimal | None) -> list[Claim]:
    """The oldest claims that only the budget refused and that fit, one after another, in what is ``left``.

    A claim that does not fit is passed over, not waited for: a small Pod behind a large one may go.
    None means that the budget was taken away, so everybody fits.
    """
    chosen = []
    for claim in sorted(waiting, key=lambda c: (c.pod_created_at or c.created_at, c.claim_id)):
        wanted = claim.wanted_per_hour
        if claim.phase is not Phase.PENDING or wanted is None:
            continue
        if left is None:
            chosen.append(claim)
        elif wanted <= left:
            left -= wanted
            chosen.append(claim)
    return chosen
