"""Claims whose Pod is in no list of its cluster: what ends them, and how sure one has to be.

One Pod that is missing is read by name, and gone when the API server says so. When most of a cluster's Pods
are missing at once, that is *unknown* at first, and alarms: each is believed gone only when two reads,
``BELIEVED_AFTER`` apart, find it missing in the very cluster that it was seen in.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from nebula.domain.claim import Claim, Phase, TerminationReason
from nebula.kubernetes.pod import Pod
from nebula.lifecycle.assessment import vanished_at_once
from nebula.lifecycle.observation import BELIEVED_AFTER
from nebula.stores.claims import ConflictError
from nebula.workflows.edits import keep_opted_out
from nebula.workflows.observe import Observation
from nebula.workflows.one_claim import one_claim
from nebula.workflows.pod_checks import PodReading, Standing, read_pod
from nebula.workflows.pod_report import show_let_go
from nebula.workflows.services import Services
from nebula.workflows.terminate import end_claim
from nebula.workflows.views import ClusterView

_GATED = frozenset({Phase.PENDING, Phase.PLACED, Phase.PROVISIONING, Phase.PROVISIONED, Phase.RELEASING})
_LEAVING = frozenset({Phase.TERMINATING, Phase.TERMINATED})
#: Pods read at once.
_READERS = 8
#: Claims named in one log line.
_NAMED = 20


def end_claims_without_pod(
    services: Services, view: ClusterView, pods: Mapping[str, Pod], seen: Observation, *, until: datetime
) -> int:
    """End the claims of a cluster whose Pods are gone; returns how many. Stops when it is ``until``.

    A Pod that waited for a place and whose gate somebody else took off is as good as gone.
    """
    expected = [claim for claim in view.claims if claim.phase not in _LEAVING and view.is_home_of(claim)]
    missing = [claim for claim in expected if claim.pod_uid not in pods]
    let_go = [claim for claim in expected if claim.phase is Phase.PENDING and _let_go(pods.get(claim.pod_uid))]
    for claim in expected:
        if claim.pod_absent_since is not None and claim.pod_uid in pods:
            _note(services, claim, None)
    doubted = vanished_at_once(len(expected), len(missing))
    if doubted:
        _alarm(services, view, missing, len(expected), seen)

    def judge(claim: Claim) -> bool:
        return services.clock.now() < until and _end_if_gone(services, view, claim, doubted=doubted)

    if not missing + let_go:
        return 0
    with ThreadPoolExecutor(max_workers=_READERS) as pool:
        return sum(pool.map(judge, missing + let_go))


def _let_go(pod: Pod | None) -> bool:
    return pod is not None and not pod.gated and pod.deletion_timestamp is None


def _alarm(services: Services, view: ClusterView, missing: list[Claim], expected: int, seen: Observation) -> None:
    services.telemetry.error(
        "pods vanished at once",
        cluster=view.api.name,
        missing=len(missing),
        of=expected,
        claims=[claim.claim_id for claim in missing[:_NAMED]],
    )
    services.telemetry.count("ClusterUnknown", cluster=view.api.name)
    seen.unknown.add(f"cluster/{view.api.name}")


def _end_if_gone(services: Services, view: ClusterView, claim: Claim, *, doubted: bool) -> bool:
    """Confirm by reading the Pod itself: the list may be older than the claim."""
    with one_claim(services, claim, "claim not ended"):
        reading = read_pod(view.api, claim)
        if doubted and reading.pod is None:
            return _end_if_believed(services, claim, reading)
        if reading.standing is Standing.GONE or (reading.standing is Standing.OPTED_OUT and claim.phase in _GATED):
            end_claim(services, claim, TerminationReason.POD_DELETED, reading.detail)
            return True
        if reading.pod is not None and reading.standing is Standing.UNGATED and claim.phase is Phase.PENDING:
            end_claim(services, claim, TerminationReason.POD_DELETED, reading.detail)
            show_let_go(services, view.api, reading.pod)
            return True
        services.telemetry.info("pod is not listed but there", claim_id=claim.claim_id, standing=str(reading.standing))
        if reading.pod is not None and not reading.pod.enabled and claim.phase is Phase.RELEASED:
            keep_opted_out(services, view.api, claim, reading.pod)
        if claim.pod_absent_since is not None:
            _note(services, claim, None)
    return False


def _end_if_believed(services: Services, claim: Claim, reading: PodReading) -> bool:
    """The first 404 is remembered, a later one believed; never where the cluster's identity is not known."""
    now = services.clock.now()
    if not claim.cluster_uid:
        return False
    if claim.pod_absent_since is None:
        _note(services, claim, now)
        return False
    if now - claim.pod_absent_since < BELIEVED_AFTER:
        return False
    message = f"{reading.detail}, and has been since {claim.pod_absent_since:%Y-%m-%dT%H:%M:%SZ}"
    end_claim(services, claim, TerminationReason.POD_DELETED, message)
    return True


def _note(services: Services, claim: Claim, since: datetime | None) -> None:
    try:
        services.claims.save(claim, claim.model_copy(update={"pod_absent_since": since}))
    except ConflictError:
        services.telemetry.info("claim moved meanwhile", claim_id=claim.claim_id)
