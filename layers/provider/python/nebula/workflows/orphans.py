"""Instances that carry our mark and that no claim wants (design §7): seen twice, then ended or reported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from nebula.domain.claim import Claim, Phase, is_claim_id
from nebula.domain.instance import Instance, InstanceState
from nebula.providers.base import Provider
from nebula.providers.errors import ProviderError
from nebula.workflows.observe import Observation
from nebula.workflows.services import Services

#: An owned instance without any claim must be this old: its ledger row may be on its way.
UNCLAIMED_AGE = timedelta(minutes=10)
#: "Seen twice": the second sight this long after the first, so not by the same look.
SEEN_APART = timedelta(seconds=10)


@dataclass(frozen=True)
class OrphanPolicy:
    """``terminate`` ends orphans; otherwise they are reported only (template parameter ReapOrphans)."""

    terminate: bool = True


@dataclass(frozen=True)
class OrphanReport:
    """Ids of owned instances that nobody wants, of those whose end was asked for, and foreign ones' number."""

    orphans: tuple[str, ...] = ()
    terminated: tuple[str, ...] = ()
    foreign: int = 0


def reap_orphans(services: Services, seen: Observation, policy: OrphanPolicy) -> OrphanReport:
    """Judge every instance of every listed provider. Foreign ones are counted and never touched."""
    orphans: list[str] = []
    ended: list[str] = []
    foreign = 0
    live = {claim.claim_id: claim for view in seen.clusters.values() for claim in view.claims}
    for view in seen.providers.values():
        for instance in view.listing.instances:
            if instance.mark is None or instance.mark.installation != services.installation:
                foreign += 1
                continue
            if instance.state is InstanceState.TERMINATED or not _is_orphan(services, instance, live, seen):
                continue
            orphans.append(instance.id)
            if policy.terminate and _end(services, view.provider, instance):
                ended.append(instance.id)
    if orphans:
        services.telemetry.error("orphans", instances=orphans, terminated=ended)
        services.telemetry.count("OrphanInstances", len(orphans))
    return OrphanReport(tuple(orphans), tuple(ended), foreign)


def _is_orphan(services: Services, instance: Instance, live: Mapping[str, Claim], seen: Observation) -> bool:
    """Whether it is unwanted *and* was so when it was first seen, long enough ago.

    An instance that its claim wanted when the look read it costs nothing here; only of any other is the ledger
    asked, by key: the look's claims come from an index that lags.
    """
    now = services.clock.now()
    claim_id = instance.mark.claim_id if instance.mark is not None else ""
    if claim_id in live and _wanted(live[claim_id], instance):
        return False
    claim = services.claims.get(claim_id) if is_claim_id(claim_id) else None
    if claim is not None and _wanted(claim, instance):
        _miss_cluster(services, claim, seen)
        return False
    first = services.sightings.first_seen(f"orphan/{instance.id}", now)
    if claim is None and now - _born(instance, first) < UNCLAIMED_AGE:
        return False
    return now - first >= SEEN_APART


def _miss_cluster(services: Services, claim: Claim, seen: Observation) -> None:
    """A cluster whose parameter is gone while its claims live is unknown, and in no other list."""
    if claim.cluster not in seen.clusters:
        services.telemetry.error("instance of a cluster that is not configured", claim_id=claim.claim_id)
        seen.unknown.add(f"cluster/{claim.cluster}")


def _wanted(claim: Claim, instance: Instance) -> bool:
    """Whether the claim knows the instance, or may still come to know it."""
    if claim.phase is Phase.TERMINATED or instance.mark is None:
        return False
    for attempt in claim.attempts:
        if attempt.number == instance.mark.attempt and not attempt.confirmed_gone:
            return attempt.instance_id in (None, instance.id)
    return False


def _born(instance: Instance, first: datetime) -> datetime:
    return instance.created_at if instance.created_at is not None else first


def _end(services: Services, provider: Provider, instance: Instance) -> bool:
    try:
        provider.terminate(instance.id)
    except ProviderError as error:
        services.telemetry.warning("orphan not terminated", instance_id=instance.id, error=str(error))
        return False
    return True
