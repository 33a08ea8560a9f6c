"""The budget counters, recounted from the claims (docs/placement.md).

A counter moves in one transaction with its claim, so a difference means a mended bug, a row changed by
hand, or an index that lags. The last is why a count below the counter must be seen twice: freeing
money that is still spent is the error that costs.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal

from nebula.domain.unreadable import UnreadableClaim
from nebula.placement.budget import committed
from nebula.stores.claims import Budget
from nebula.workflows.services import Services

#: Two counts in a row, one of which may have come late or been cut short.
AGREE_WITHIN = timedelta(minutes=3)
#: Each minute another cluster comes first in the sweep. Where slow ones leave no time, that is all that a cluster gets.
TURN = timedelta(minutes=1)


def recount_budgets(services: Services, cluster: str, node_pools: Iterable[str]) -> int:
    """Correct the counters of the named NodePools, and of any that live claims name; returns how many.

    Each counter is read before the claims are, and written only if its version is still the one read.
    Run once a minute by the sweep: two sweeps that agree on a difference correct it downward. A claim that cannot be
    read counts as its writer counted it; where not even that can be read, nothing of its NodePool is freed, or of any.
    """
    unreadable: list[UnreadableClaim] = []
    live = list(services.claims.live(cluster, unreadable))
    named = {*node_pools, *(claim.node_pool for claim in live), *(row.node_pool for row in unreadable)}
    names = sorted(named - {""})
    read = {name: services.claims.budget(cluster, name) for name in names}
    counts = committed(live, unreadable)
    suspects = [name for name in names if read[name].committed_per_hour != counts.get(name, Decimal(0))]
    if not suspects:
        return 0
    fresh = {name: services.claims.budget(cluster, name) for name in suspects}
    unreadable.clear()
    live = list(services.claims.live(cluster, unreadable))
    again = committed(live, unreadable)
    unknown = {row.node_pool for row in unreadable if row.committed_per_hour is None or not row.node_pool}
    return sum(
        _correct(services, fresh[name], again.get(name, Decimal(0)), floor=bool(unknown & {name, ""}))
        for name in suspects
    )


def _correct(services: Services, counter: Budget, counted: Decimal, *, floor: bool) -> bool:
    """Apply one recount that began after ``counter`` was read; a ``floor`` says what is held at least."""
    surplus = counter.committed_per_hour - counted
    if surplus == 0 or (surplus > 0 and floor):
        return False
    subject = f"budget/{counter.cluster}/{counter.node_pool}/{surplus.normalize():f}"
    if surplus > 0 and not _agreed(services, subject):
        return False
    if not services.claims.correct_budget(counter, counted):
        return False
    services.telemetry.error(
        "budget counter corrected",
        cluster=counter.cluster,
        node_pool=counter.node_pool,
        was=str(counter.committed_per_hour),
        counted=str(counted),
    )
    services.telemetry.count("BudgetCorrections")
    services.sightings.forget(subject)
    return True


def _agreed(services: Services, subject: str) -> bool:
    """Whether the cluster's sweep just before found the same difference; noted for the next one where none did.

    One of hours ago agrees with nothing: machines cost alike, so an index that lags now differs by what it lagged then.
    """
    now = services.clock.now()
    known = services.sightings.known(subject, now)
    first = services.sightings.first_seen(subject, now)
    if known and now - first > max(AGREE_WITHIN, TURN * (len(services.clusters.names()) + 1)):
        services.sightings.forget(subject)
        services.sightings.first_seen(subject, now)
        return False
    return known
