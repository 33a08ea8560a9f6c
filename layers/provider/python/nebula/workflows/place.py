"""Placement: read the Pod and its NodePool, decide, write the claim (docs/placement.md)."""

from __future__ import annotations

from datetime import datetime

from nebula.domain.claim import Claim, Phase, TerminationReason, claim_id_for
from nebula.kubernetes.api import KubernetesApi
from nebula.kubernetes.node_pool import revision_of
from nebula.kubernetes.pod import Pod
from nebula.lifecycle.transitions import move, reopenable, reopened
from nebula.stores.claims import ConflictError
from nebula.workflows.placing import Placing
from nebula.workflows.pod_checks import Standing, read_pod
from nebula.workflows.services import Services
from nebula.workflows.terminate import end_claim

DECIDE_AT_ONCE = 20
"""Claims that one ``NodePool Changed`` decides itself, within the function's 30 s; the rest are made due."""


def place_pod(services: Services, cluster: str, namespace: str, name: str, uid: str) -> Claim | None:
    """Place a gated Pod, or re-decide a Pending claim whose Pod changed; returns the claim as it stands.

    A Pod that is gone, another one of the same name, not opted in, without our gate or behind others'
    is left alone, and so is a claim that is past placement: the event was late or came twice. A claim that ended
    because the Pod opted out begins anew when it opts in again. Raises
    ``ClusterUnavailableError``, and KeyError for an unknown cluster.
    """
    api = services.clusters.get(cluster)
    claim = services.claims.get(claim_id_for(cluster, uid))
    if claim is not None and claim.phase is not Phase.PENDING and not reopenable(claim):
        return claim
    pod = _our_pod(api, namespace, name, uid)
    if pod is None:
        return claim
    now = services.clock.now()
    if claim is not None and reopenable(claim):
        return _reopen(services, api, pod, claim, now)
    if claim is not None and _settled(claim, pod, now):
        return claim
    return _place(services, api, pod, claim)


def place_claim(services: Services, claim_id: str, *, due: bool = True) -> Claim | None:
    """Decide again for a Pending claim that is due, or (``due=False``) was just rejected.

    A claim that comes back through ``due`` has left its chain of events: its rejections start anew.
    """
    claim = services.claims.get(claim_id)
    if claim is None or claim.phase is not Phase.PENDING:
        return claim
    api = services.clusters.get(claim.cluster)
    pod = _our_pod(api, claim.namespace, claim.pod_name, claim.pod_uid)
    if pod is None:
        return _end_if_gone(services, api, claim)
    return _place(services, api, pod, claim, rejections=0 if due else claim.rejections)


def _reopen(services: Services, api: KubernetesApi, pod: Pod, claim: Claim, now: datetime) -> Claim | None:
    """A Pod that opted out behind the gate and in again: its claim, which is over, begins anew."""
    try:
        begun = services.claims.save(claim, reopened(claim, now))
    except ConflictError:
        return services.claims.get(claim.claim_id)
    services.telemetry.info("claim reopened", claim_id=claim.claim_id)
    return _place(services, api, pod, begun)


def _end_if_gone(services: Services, api: KubernetesApi, claim: Claim) -> Claim | None:
    """End a Pending claim whose Pod is gone from its own cluster: nothing else may ever speak of it."""
    reading = read_pod(api, claim)
    if reading.standing is not Standing.GONE:
        return claim
    try:
        return end_claim(services, claim, TerminationReason.POD_DELETED, reading.detail)
    except ConflictError:
        return services.claims.get(claim.claim_id)


def node_pool_changed(services: Services, cluster: str, name: str) -> int:
    """Wake the Pending claims that were decided on another spec of the NodePool, the oldest first; returns how many.

    A change of its status wakes nobody. The oldest few are decided here and now, the rest at the next
    tick. A changed pool is a new question, so what refused a claim for reasons of its own is asked again. Claims that
    only a newer release can read wait for it.
    """
    revision = revision_of(services.clusters.get(cluster).get_node_pool(name))
    waiting = sorted(
        (claim for claim in services.claims.live(cluster, []) if _waits_for(claim, name, revision)),
        key=lambda claim: (claim.created_at, claim.claim_id),
    )
    now = services.clock.now()
    for number, claim in enumerate(waiting):
        try:
            fresh = move(claim, Phase.PENDING, now, exclusions=(), next_action_at=claim.created_at)
            services.claims.save(claim, fresh)
        except ConflictError:
            continue
        if number < DECIDE_AT_ONCE:
            place_claim(services, claim.claim_id)
    return len(waiting)


def _waits_for(claim: Claim, node_pool: str, revision: str) -> bool:
    return claim.phase is Phase.PENDING and claim.node_pool == node_pool and claim.node_pool_revision != revision


def _our_pod(api: KubernetesApi, namespace: str, name: str, uid: str) -> Pod | None:
    """The Pod if it waits for us now, else None."""
    found = api.get_pod(namespace, name)
    pod = Pod.from_object(found) if found is not None else None
    if pod is None or pod.uid != uid or pod.deletion_timestamp is not None:
        return None
    return pod if pod.enabled and pod.gated and not pod.foreign_gates else None


def _settled(claim: Claim, pod: Pod, now: datetime) -> bool:
    """Whether the last decision still answers: our own status writes come back as changes too."""
    waits = claim.next_action_at is None or claim.next_action_at > now
    return waits and claim.pod_fields_hash == pod.fields_hash()


def _place(
    services: Services, api: KubernetesApi, pod: Pod, claim: Claim | None, *, rejections: int = 0
) -> Claim | None:
    try:
        return Placing(services, api, pod, claim, rejections).run()
    except ConflictError:
        services.telemetry.info("claim moved meanwhile", pod=f"{pod.namespace}/{pod.name}")
        return services.claims.get(claim_id_for(api.name, pod.uid))
