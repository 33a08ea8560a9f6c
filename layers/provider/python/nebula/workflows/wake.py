"""Making Pending claims due now, because what they wait for may have come.

Nothing is decided here: the claim's ``next_action_at`` moves, and the tick that follows announces it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from nebula.domain.claim import Claim, Phase
from nebula.domain.nodepool import NodePool
from nebula.kubernetes.api import ClusterUnavailableError, KubernetesApi, KubernetesError
from nebula.kubernetes.node_pool import InvalidNodePoolError, node_pool_from_object
from nebula.placement.budget import that_fit
from nebula.stores.claims import DueClaim
from nebula.workflows.pool_ledger import budget_left
from nebula.workflows.services import Services

#: Claims of one cluster that freed budget wakes in one look. They are announced before all else, so there must be
#: room beside them in ``announce.DUE_LIMIT``: for a machine whose end is to be asked for again, say.
WOKEN_PER_LOOK = 100


def wake_budget_waiters(services: Services, api: KubernetesApi, claims: Iterable[Claim]) -> int:
    """Make the oldest claims due that fit in what their NodePool's budget has free; returns how many.

    ``claims`` are the cluster's live ones. Costs nothing while nobody waits for budget; a cluster that
    does not answer is asked once and wakes nobody.
    """
    waiting: dict[str, list[Claim]] = defaultdict(list)
    for claim in claims:
        if claim.phase is Phase.PENDING and claim.wanted_per_hour is not None:
            waiting[claim.node_pool].append(claim)
    woken = 0
    for name, pool_claims in waiting.items():
        try:
            pool = _readable(services, api, name)
        except ClusterUnavailableError as error:
            services.telemetry.warning("node pools unknown", cluster=api.name, error=str(error))
            break
        if pool is not None:
            fitting = that_fit(pool_claims, budget_left(services.claims, api.name, pool))
            woken += wake(services, fitting[: max(WOKEN_PER_LOOK - woken, 0)])
    return woken


def wake(services: Services, claims: Iterable[Claim]) -> int:
    """Make claims due at once; returns how many. One that moved meanwhile is left alone.

    ``next_action_at`` becomes the time at which the claim was made, so that ``due``, which begins with
    what is due longest, announces the oldest claims first, and before those that come by their own timer.
    """
    woken = 0
    for claim in claims:
        planned = claim.next_action_at
        if claim.phase is not Phase.PENDING or planned is None or planned == claim.created_at:
            continue
        due = DueClaim(
            claim_id=claim.claim_id,
            phase=claim.phase,
            version=claim.version,
            next_action_at=planned,
            cluster=claim.cluster,
        )
        woken += services.claims.touch(due, claim.created_at)
    if woken:
        services.telemetry.info("claims woken", count=woken)
    return woken


def _readable(services: Services, api: KubernetesApi, name: str) -> NodePool | None:
    try:
        found = api.get_node_pool(name)
        return None if found is None else node_pool_from_object(found)
    except InvalidNodePoolError:
        return None
    except ClusterUnavailableError:
        raise
    except KubernetesError as error:
        services.telemetry.warning("node pool unknown", cluster=api.name, node_pool=name, error=str(error))
        return None
