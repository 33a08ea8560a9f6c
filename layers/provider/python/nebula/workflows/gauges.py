"""What an operator is alarmed by, measured once a minute from what the sweep has read anyway.

A gauge of zero is not sent: custom metrics cost money. The alarms of ``template.yaml`` watch these names,
so they carry no dimension but the function's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from nebula.domain.claim import Claim, Phase
from nebula.domain.unreadable import UnreadableBlock
from nebula.kubernetes.api import Object
from nebula.kubernetes.node_pool import InvalidNodePoolError, node_pool_from_object
from nebula.kubernetes.pod import Pod
from nebula.lifecycle.deadlines import overdue
from nebula.stores.blocks import Block
from nebula.workflows.observe import Observation
from nebula.workflows.readable import tell_unreadable_blocks
from nebula.workflows.services import Services

#: A released Pod that no scheduler bound in this time does not fit its Node.
UNBOUND_AFTER = timedelta(seconds=60)


@dataclass(frozen=True)
class Gauges:
    """One minute's figures. ``oldest_gated_pod`` is in seconds; the rest are counts."""

    oldest_gated_pod: float = 0.0
    overdue_claims: int = 0
    unbound_pods: int = 0
    unready_instances: int = 0
    unknown_systems: int = 0
    blocked_providers: int = 0


def measure(
    seen: Observation,
    *,
    clusters: Collection[str],
    providers: Collection[str],
    blocks: Mapping[str, Sequence[Block]],
    now: datetime,
) -> Gauges:
    """The figures of one look. ``clusters`` and ``providers`` are those that should have answered."""
    claims = [claim for view in seen.clusters.values() for claim in view.claims]
    pods = {uid: pod for view in seen.clusters.values() for uid, pod in (view.pods or {}).items()}
    silent = {f"cluster/{n}" for n in clusters if n not in seen.clusters or seen.clusters[n].pods is None}
    silent |= {f"provider/{name}" for name in providers if name not in seen.providers}
    return Gauges(
        oldest_gated_pod=max((_waiting(pod, now) for pod in pods.values()), default=0.0),
        overdue_claims=sum(overdue(claim, now) for claim in claims),
        unbound_pods=sum(_unbound(claim, pods.get(claim.pod_uid), now) for claim in claims),
        unready_instances=sum(claim.observation.unready_since is not None for claim in claims),
        unknown_systems=len(silent | seen.unknown),
        blocked_providers=sum(any(_whole(block) for block in blocks.get(name, ())) for name in providers),
    )


def report(services: Services, seen: Observation, providers: Collection[str]) -> Gauges:
    """Measure and send; returns what was measured."""
    now = services.clock.now()
    blocks = {name: _blocks(services, name, now) for name in providers}
    found = measure(seen, clusters=services.clusters.names(), providers=providers, blocks=blocks, now=now)
    services.telemetry.count("OldestGatedPod", found.oldest_gated_pod, unit="Seconds")
    services.telemetry.count("ClaimsOverdue", found.overdue_claims)
    services.telemetry.count("PodsUnbound", found.unbound_pods)
    services.telemetry.count("InstancesUnready", found.unready_instances)
    services.telemetry.count("SystemsUnknown", found.unknown_systems)
    services.telemetry.count("ProvidersBlocked", found.blocked_providers)
    return found


def spend_over_budget(pools: Iterable[Object], claims: Iterable[Claim]) -> Decimal:
    """USD per hour by which instances cost more than their NodePools' budgets, all pools together.

    What is committed never exceeds a budget; this is what providers say they bill. A pool that cannot be
    read, or has no budget, counts nothing.
    """
    spent: dict[str, Decimal] = defaultdict(Decimal)
    for claim in claims:
        if claim.instance_id is not None:
            spent[claim.node_pool] += claim.observation.cost_per_hour or Decimal(0)
    over = Decimal(0)
    for pool_object in pools:
        try:
            pool = node_pool_from_object(pool_object)
        except InvalidNodePoolError:
            continue
        if pool.budget_per_hour is not None:
            over += max(spent[pool.name] - pool.budget_per_hour, Decimal(0))
    return over


def _waiting(pod: Pod, now: datetime) -> float:
    """Seconds that a Pod has waited for us alone."""
    ours = pod.gated and not pod.foreign_gates and pod.deletion_timestamp is None
    return max((now - pod.created_at).total_seconds(), 0.0) if ours and pod.created_at is not None else 0.0


def _unbound(claim: Claim, pod: Pod | None, now: datetime) -> bool:
    if claim.phase is not Phase.RELEASED or claim.released_at is None or pod is None:
        return False
    return pod.node_name is None and not pod.terminal and now - claim.released_at > UNBOUND_AFTER


def _blocks(services: Services, provider: str, now: datetime) -> list[Block]:
    """A provider's blocks. Placement passes over the rows that cannot be read; once a minute they are told of here."""
    unreadable: list[UnreadableBlock] = []
    blocks = services.blocks.active(provider, now, unreadable)
    tell_unreadable_blocks(services, provider, unreadable)
    return blocks


def _whole(block: Block) -> bool:
    """A block of a whole provider: its key or its balance, which only a person can mend."""
    return block.kind == "blocked" and (block.shape, block.capacity_type, block.region) == ("*", "*", "*")
