"""Each minute: Pods against claims, claims against Pods, what is rented against both.

The sweep is what makes a lost event cost a minute and nothing more. Whatever could not be listed is
unknown, and nothing is reclaimed on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from nebula.domain.claim import Claim, Phase, claim_id_for
from nebula.domain.unreadable import UnreadableClaim
from nebula.events.batch import where
from nebula.events.details import DetailType, PodDetail
from nebula.events.envelope import Event
from nebula.kubernetes.pod import Pod
from nebula.lifecycle.transitions import reopenable
from nebula.workflows.announce import hint
from nebula.workflows.edits import warn_of_edits, warn_of_ungated
from nebula.workflows.image_wait import wake_image_waiters
from nebula.workflows.nodes import retire_nodes
from nebula.workflows.observe import Observation
from nebula.workflows.orphans import OrphanPolicy, OrphanReport, reap_orphans
from nebula.workflows.pool_status import tend_pools
from nebula.workflows.readable import claim_at
from nebula.workflows.services import Services
from nebula.workflows.vanished import end_claims_without_pod
from nebula.workflows.views import ClusterView

_Item = TypeVar("_Item")

#: A Pod this young may have its event still on the way.
SETTLING = timedelta(seconds=20)
#: Pods of one cluster announced again by one sweep: each costs a read, and everything after it its time.
ANNOUNCED_PER_SWEEP = 1000


@dataclass(frozen=True)
class SweepReport:
    """What a sweep found: Pods announced again, claims ended, and the orphans."""

    announced: int
    ended: int
    orphans: OrphanReport


def sweep(services: Services, seen: Observation, policy: OrphanPolicy, *, until: datetime) -> SweepReport:
    """Compare what a look saw; ``seen`` must list every configured provider.

    Stops cleanly when it is ``until``. Another cluster is the first each minute, so that a sweep that is always
    cut short still reaches all.
    """
    announced = ended = 0
    now = services.clock.now()
    orphans = reap_orphans(services, seen, policy, until=now + (until - now) / 2)
    for view in _rotated(list(seen.clusters.values()), _turn(services.clock.now())):
        if services.clock.now() >= until:
            services.telemetry.warning("sweep cut short", next_cluster=view.api.name)
            break
        if view.pods is None:
            continue
        try:
            # What costs money first: an ending is never behind reads that a slow API server draws out.
            ended += end_claims_without_pod(services, view, view.pods, seen, until=until)
            announced += _announce_pods(services, view, view.pods, until)
            _tend(services, view, view.pods, until)
        except (ClientError, BotoCoreError):
            raise
        except Exception as error:  # noqa: BLE001 - an odd object of one cluster must not cost the others their sweep
            services.telemetry.error("sweep failed", cluster=view.api.name, error=where(error))
            services.telemetry.count("Defects")
    return SweepReport(announced, ended, orphans)


def _tend(services: Services, view: ClusterView, pods: dict[str, Pod], until: datetime) -> None:
    """What can wait for the next sweep when it is ``until``."""
    wake_image_waiters(services, view, until=until)
    if services.clock.now() < until:
        warn_of_edits(services, view, pods)
        warn_of_ungated(services, view, pods)
        retire_nodes(services, view)
        tend_pools(services, view.api, view.claims, view.unreadable)


def _turn(now: datetime) -> int:
    """A number that grows by one each minute."""
    return int(now.timestamp() // 60)


def _rotated(items: list[_Item], turn: int) -> list[_Item]:
    start = turn % len(items) if items else 0
    return items[start:] + items[:start]


def _announce_pods(services: Services, view: ClusterView, pods: dict[str, Pod], until: datetime) -> int:
    """Gated Pods without a claim, and Pods that changed after they were found wanting; others first each minute."""
    now = services.clock.now()
    events: list[Event] = []
    cluster = view.api.name
    known = {claim.pod_uid: claim for claim in view.claims}
    waiting = [pod for pod in pods.values() if _waits(pod, now)]
    for pod in _rotated(waiting, _turn(now) * ANNOUNCED_PER_SWEEP):
        if len(events) >= ANNOUNCED_PER_SWEEP or services.clock.now() >= until:
            services.telemetry.warning("not every Pod announced", cluster=cluster, announced=len(events))
            break
        claim = known.get(pod.uid) or claim_at(services, claim_id_for(cluster, pod.uid))
        if isinstance(claim, UnreadableClaim):
            continue
        if claim is None or reopenable(claim):
            events.append(_pod_event(services, DetailType.POD_GATED, cluster, pod))
        elif _changed_since(claim, pod):
            events.append(_pod_event(services, DetailType.POD_CHANGED, cluster, pod))
    return len(events) if events and hint(services, events) else 0


def _waits(pod: Pod, now: datetime) -> bool:
    """Whether a Pod waits for us alone, and is no news any more."""
    settling = pod.created_at is not None and abs(now - pod.created_at) < SETTLING
    return pod.gated and pod.deletion_timestamp is None and not pod.foreign_gates and not settling


def _changed_since(claim: Claim, pod: Pod) -> bool:
    decided = claim.phase is Phase.PENDING and claim.pod_fields_hash is not None
    return decided and claim.pod_fields_hash != pod.fields_hash()


def _pod_event(services: Services, detail_type: DetailType, cluster: str, pod: Pod) -> Event:
    detail = PodDetail(
        cluster=cluster, namespace=pod.namespace, name=pod.name, uid=pod.uid, resource_version=pod.resource_version
    )
    return Event(source=services.source, detail_type=detail_type, detail=detail)
