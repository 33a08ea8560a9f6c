"""Instances that carry our mark and that no claim wants: seen twice, then ended or reported."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta

from botocore.exceptions import BotoCoreError, ClientError

from nebula.domain.claim import Claim, Phase, is_claim_id
from nebula.domain.instance import Instance, InstanceState
from nebula.domain.unreadable import UnreadableClaim
from nebula.events.batch import where
from nebula.providers.base import Provider
from nebula.providers.errors import ProviderError
from nebula.workflows.observe import Observation
from nebula.workflows.readable import claim_at
from nebula.workflows.services import Services

#: An owned instance without any claim must be this old: its ledger row may be on its way.
UNCLAIMED_AGE = timedelta(minutes=10)
#: "Seen twice": the second sight this long after the first, so not by the same look.
SEEN_APART = timedelta(seconds=10)
#: Ends asked for at once, where there are so many.
_ENDERS = 8
#: Instances named in one log line.
_NAMED = 50


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


def reap_orphans(services: Services, seen: Observation, policy: OrphanPolicy, *, until: datetime) -> OrphanReport:
    """Judge every instance of every listed provider. Foreign ones are counted and never touched.

    No end is asked for once it is ``until``: a provider whose deletes hang must not take the whole sweep. Others
    are the first each minute.
    """
    orphans: list[tuple[Provider, Instance]] = []
    foreign = 0
    live = {claim.claim_id: claim for view in seen.clusters.values() for claim in view.claims}
    for view in seen.providers.values():
        for instance in view.listing.instances:
            if instance.mark is None or instance.mark.installation != services.installation:
                foreign += 1
                continue
            if instance.state is not InstanceState.TERMINATED and _found_orphan(services, instance, live, seen):
                orphans.append((view.provider, instance))
    ended = _end_all(services, orphans, until) if policy.terminate and orphans else ()
    if orphans:
        named = [instance.id for _, instance in orphans[:_NAMED]]
        services.telemetry.error("orphans", instances=named, of=len(orphans), terminated=list(ended[:_NAMED]))
        services.telemetry.count("OrphanInstances", len(orphans))
    return OrphanReport(tuple(instance.id for _, instance in orphans), ended, foreign)


def _end_all(services: Services, orphans: list[tuple[Provider, Instance]], until: datetime) -> tuple[str, ...]:
    """Ask for the end of as many as there is time for; the ids of those whose end was accepted."""
    start = int(services.clock.now().timestamp() // 60) % len(orphans)
    turn = orphans[start:] + orphans[:start]

    def end(one: tuple[Provider, Instance]) -> bool:
        return services.clock.now() < until and _end(services, *one)

    if len(turn) < _ENDERS:
        accepted = [end(one) for one in turn]
    else:
        with ThreadPoolExecutor(max_workers=_ENDERS) as pool:
            accepted = list(pool.map(end, turn))
    return tuple(instance.id for (_, instance), done in zip(turn, accepted, strict=True) if done)


def _found_orphan(services: Services, instance: Instance, live: Mapping[str, Claim], seen: Observation) -> bool:
    """See ``_is_orphan``; an instance that cannot be judged keeps no other from it."""
    try:
        return _is_orphan(services, instance, live, seen)
    except (ClientError, BotoCoreError):
        raise
    except Exception as error:  # noqa: BLE001 - one row that cannot be read must not hide the other orphans
        services.telemetry.error("instance not judged", instance_id=instance.id, error=where(error))
        services.telemetry.count("Defects")
        return False


def _is_orphan(services: Services, instance: Instance, live: Mapping[str, Claim], seen: Observation) -> bool:
    """Whether it is unwanted *and* was so when it was first seen, long enough ago.

    An instance that its claim wanted when the look read it costs nothing here; only of any other is the ledger
    asked, by key: the look's claims come from an index that lags. One of a claim that cannot be read may be wanted.
    """
    now = services.clock.now()
    claim_id = instance.mark.claim_id if instance.mark is not None else ""
    if claim_id in live and _wanted(live[claim_id], instance):
        return False
    claim = claim_at(services, claim_id) if is_claim_id(claim_id) else None
    if isinstance(claim, UnreadableClaim):
        return False
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
    """When it was made; not after it was first seen, whatever the provider's clock says."""
    return first if instance.created_at is None else min(instance.created_at, first)


def _end(services: Services, provider: Provider, instance: Instance) -> bool:
    try:
        provider.terminate(instance.id)
    except ProviderError as error:
        services.telemetry.warning("orphan not terminated", instance_id=instance.id, error=str(error))
        return False
    return True
