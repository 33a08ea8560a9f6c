"""What each NodePool shows of itself: readiness, instances per provider, committed price (docs/placement.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from nebula.domain.claim import Claim, Phase
from nebula.domain.nodepool import NodePool
from nebula.domain.unreadable import UnreadableClaim
from nebula.events.details import DetailType, NodePoolDetail
from nebula.events.envelope import Event
from nebula.kubernetes.api import ClusterUnavailableError, KubernetesApi, KubernetesError, Object
from nebula.kubernetes.node_pool import InvalidNodePoolError, node_pool_from_object, revision_of
from nebula.kubernetes.node_pool_status import (
    INVALID_SPEC,
    UNKNOWN_PROVIDER,
    VALID,
    PoolPicture,
    pool_status_patch,
    ready_condition,
)
from nebula.placement.budget import committed, instances
from nebula.providers.base import Providers
from nebula.providers.errors import ProviderError, ProviderUnconfiguredError
from nebula.workflows.announce import hint
from nebula.workflows.gauges import spend_over_budget
from nebula.workflows.recount import recount_budgets
from nebula.workflows.services import Services
from nebula.workflows.wake import wake


def tend_pools(
    services: Services, api: KubernetesApi, claims: Sequence[Claim], unreadable: Sequence[UnreadableClaim] = ()
) -> int:
    """The sweep's work on a cluster's NodePools: recount, show the status, wake for a change; returns what was written.

    ``claims`` are the cluster's live ones as the sweep read them, ``unreadable`` those that it could not.
    An unreachable cluster is left as it is.
    """
    try:
        pools = api.list_node_pools()
    except KubernetesError as error:
        services.telemetry.warning("node pools unknown", cluster=api.name, error=str(error))
        return 0
    _announce_changed(services, api.name, pools, claims)
    recount_budgets(services, api.name, [name for pool in pools if (name := _name(pool))])
    services.telemetry.count("SpendOverBudget", float(spend_over_budget(pools, claims)), unit="None")
    return project_pool_status(services, api, pools, claims, services.clock.now(), unreadable)


def _announce_changed(services: Services, cluster: str, pools: Iterable[Object], claims: Iterable[Claim]) -> None:
    """Tell again of NodePools by whose spec a claim that waits was not decided.

    The word of the change was lost, or was acted upon while a decision by the spec of before was on its way.
    """
    revisions = {_name(pool): revision_of(pool) for pool in pools}
    waiting = (claim for claim in claims if claim.phase is Phase.PENDING and claim.node_pool in revisions)
    names = {claim.node_pool for claim in waiting if claim.node_pool_revision != revisions[claim.node_pool]}
    details = [NodePoolDetail(cluster=cluster, name=name) for name in sorted(names - {""})]
    if details:
        told = [Event(source=services.source, detail_type=DetailType.NODEPOOL_CHANGED, detail=d) for d in details]
        hint(services, told)


def project_pool_status(
    services: Services,
    api: KubernetesApi,
    pool_objects: Iterable[Object],
    live_claims: Sequence[Claim],
    now: datetime,
    unreadable: Sequence[UnreadableClaim] = (),
) -> int:
    """Write the status of every NodePool where it differs; returns how many were written.

    A NodePool whose providers are better known than before (a key appeared) wakes its Pending claims.
    Nobody's failure stops the others.
    """
    placed, held = instances(live_claims), committed(live_claims, unreadable)
    written = 0
    for pool in pool_objects:
        name = _name(pool)
        picture = picture_of(services.providers, pool, placed.get(name, {}), held.get(name, Decimal(0)))
        patch = None if picture is None else pool_status_patch(pool, picture, now)
        if picture is None or patch is None:
            continue
        try:
            api.patch_node_pool_status(name, patch)
        except ClusterUnavailableError:
            return written
        except KubernetesError as error:
            services.telemetry.warning("node pool status not written", node_pool=name, error=str(error))
            continue
        written += 1
        if _healed(pool, picture):
            wake(services, (c for c in live_claims if c.phase is Phase.PENDING and c.node_pool == name))
    return written


def picture_of(
    providers: Providers, pool_object: Mapping[str, Any], placed: Mapping[str, int], held: Decimal
) -> PoolPicture | None:
    """What the NodePool should show; None while nobody can tell whether its providers have keys."""
    try:
        pool = node_pool_from_object(pool_object)
    except InvalidNodePoolError as error:
        return PoolPicture(False, INVALID_SPEC, str(error), _names(pool_object), placed, held)
    try:
        unknown = _unconfigured(providers, pool)
    except ProviderError:
        return None
    names = tuple(dict.fromkeys(entry.name for entry in pool.providers))
    if not unknown:
        return PoolPicture(True, VALID, "every provider is configured", names, placed, held)
    rest = "" if len(unknown) == len(names) else "; the others are used"
    return PoolPicture(False, UNKNOWN_PROVIDER, "; ".join(unknown.values()) + rest, names, placed, held)


def _unconfigured(providers: Providers, pool: NodePool) -> dict[str, str]:
    unknown = {}
    for entry in pool.providers:
        try:
            providers.get(entry.name)
        except ProviderUnconfiguredError as error:
            unknown[entry.name] = str(error)
    return unknown


def _healed(pool: Mapping[str, Any], picture: PoolPicture) -> bool:
    before = ready_condition(pool)
    return before.get("reason") == UNKNOWN_PROVIDER and before.get("message") != picture.message


def _name(pool: Mapping[str, Any]) -> str:
    name = (pool.get("metadata") or {}).get("name")
    return name if isinstance(name, str) else ""


def _names(pool: Mapping[str, Any]) -> tuple[str, ...]:
    entries = (pool.get("spec") or {}).get("providers")
    found = [entry.get("name") for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
    return tuple(dict.fromkeys(name for name in found if isinstance(name, str)))
