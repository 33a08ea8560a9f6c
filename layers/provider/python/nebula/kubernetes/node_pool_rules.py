"""What must hold between the fields of a NodePool, as the CRD says it in CEL (``cluster/crds/nodepools.yaml``).

Checked again where a NodePool is read: an API server may hold objects that were written under an older CRD,
and a policy that contradicts itself must not be half kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from nebula.domain.nodepool import IngressMode, NodePool, Strategy
from nebula.domain.workload import EgressMode

MAX_REGION_LENGTH = 32
MAX_TARGETS = 64
MAX_TARGET_LENGTH = 253
MAX_PORTS = 10
CLOUDS = ("SECURE", "COMMUNITY")
"""RunPod's two kinds of cloud (REST v2, ``cloud`` of a create)."""


def broken_rules(pool: NodePool) -> Iterator[tuple[str, str]]:
    """Every broken rule as (JSON path, message), none for a sound NodePool."""
    yield from _providers(pool)
    yield from _deadlines(pool)
    yield from _egress(pool)
    yield from _ingress(pool)


def _providers(pool: NodePool) -> Iterator[tuple[str, str]]:
    if not pool.capacity_types:
        yield "spec.capacityTypes", "must hold at least one"
    for index, entry in enumerate(pool.providers):
        where = f"spec.providers[{index}]"
        if pool.strategy is Strategy.WEIGHTED and entry.weight is None:
            yield f"{where}.weight", "strategy Weighted requires a weight on every provider"
        for number, region in enumerate(entry.regions):
            if len(region) > MAX_REGION_LENGTH:
                yield f"{where}.regions[{number}]", f"must be at most {MAX_REGION_LENGTH} characters"
        if entry.name == "runpod" and entry.parameters.get("cloud", CLOUDS[0]) not in CLOUDS:
            yield f"{where}.parameters.cloud", f"must be {' or '.join(CLOUDS)}"


def _deadlines(pool: NodePool) -> Iterator[tuple[str, str]]:
    failover = pool.failover
    for name, value in (
        ("reserveDeadline", failover.reserve_deadline),
        ("releaseDeadline", failover.release_deadline),
        ("startDeadline", failover.start_deadline),
    ):
        if not value:
            yield f"spec.failover.{name}", "must be a duration above zero"


def _egress(pool: NodePool) -> Iterator[tuple[str, str]]:
    targets, listed = pool.egress.targets, pool.egress.mode is EgressMode.ALLOWLIST
    if targets and not listed:
        yield "spec.egress.targets", "is only valid with mode Allowlist"
    if listed and not targets:
        yield "spec.egress.targets", "mode Allowlist requires at least one target; use mode Blocked to permit nothing"
    if len(targets) > MAX_TARGETS:
        yield "spec.egress.targets", f"must hold at most {MAX_TARGETS}"
    for number, target in enumerate(targets):
        if "," in target or len(target) > MAX_TARGET_LENGTH:
            yield f"spec.egress.targets[{number}]", f"must be one target of at most {MAX_TARGET_LENGTH} characters"


def _ingress(pool: NodePool) -> Iterator[tuple[str, str]]:
    ports, listed = pool.ingress.ports, pool.ingress.mode is IngressMode.PORTS
    if ports and not listed:
        yield "spec.ingress.ports", "is only valid with mode Ports"
    if listed and not ports:
        yield "spec.ingress.ports", "mode Ports requires at least one port"
    if len(ports) > MAX_PORTS:
        yield "spec.ingress.ports", f"must hold at most {MAX_PORTS}"
    seen: set[int] = set()
    for number, published in enumerate(ports):
        if published.port in seen:
            yield f"spec.ingress.ports[{number}].port", "is listed twice"
        seen.add(published.port)
