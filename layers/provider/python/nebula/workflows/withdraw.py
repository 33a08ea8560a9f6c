"""Taking an instance back from a Pod that waits, without racing our own release."""

from __future__ import annotations

from datetime import datetime

from nebula.domain.claim import Claim, Phase
from nebula.kubernetes.api import ClusterUnavailableError, ForbiddenError, InvalidError, KubernetesApi
from nebula.kubernetes.pod import Pod
from nebula.kubernetes.release import moved_patch, moved_status_patch
from nebula.lifecycle.deadlines import release_settled
from nebula.workflows.pod_checks import confirm_cluster


class AlreadyReleasedError(Exception):
    """The release went through although its answer was lost: there is nothing to withdraw."""


def defuse(api: KubernetesApi, claim: Claim, now: datetime) -> None:
    """Make sure that no release patch of ours can still arrive at a Releasing claim's Pod.

    A guarded write moves resourceVersion, so that a late patch meets a conflict; where the Pod itself refuses
    to be written, its status is. A cluster that takes neither is read: once patches are no longer sent, and the last
    has had its time to land, a gate that stands then stays. Does nothing in other phases and for a Pod that is gone.
    Raises AlreadyReleasedError when the Pod is released already, and the API's errors (``ConflictError`` included):
    then it is not safe to withdraw yet. ``now`` is a time before the call.
    """
    if claim.phase is not Phase.RELEASING:
        return
    found = api.get_pod(claim.namespace, claim.pod_name)
    pod = Pod.from_object(found) if found is not None else None
    if pod is None or pod.uid != claim.pod_uid:
        confirm_cluster(api, claim)
        return
    if not pod.gated:
        raise AlreadyReleasedError(f"{pod.namespace}/{pod.name} is released")
    try:
        _move_version(api, pod)
    except (ForbiddenError, InvalidError, ClusterUnavailableError):
        if not release_settled(claim, now):
            raise


def _move_version(api: KubernetesApi, pod: Pod) -> None:
    try:
        api.patch_pod(pod.namespace, pod.name, moved_patch(pod))
    except (ForbiddenError, InvalidError):
        api.patch_pod_status(pod.namespace, pod.name, moved_status_patch(pod))
