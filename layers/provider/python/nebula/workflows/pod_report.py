"""Telling the Pod's owner: the ``Released`` condition and a counted Event. Never stops a workflow."""

from __future__ import annotations

from nebula.domain.claim import Claim
from nebula.kubernetes.api import KubernetesApi, KubernetesError
from nebula.kubernetes.names import CONDITION_RELEASED
from nebula.kubernetes.pod import MalformedPodError, Pod
from nebula.kubernetes.pod_events import record
from nebula.kubernetes.status import condition_patch
from nebula.workflows.services import Services

COMPONENT = "nebula"


def show_condition(services: Services, api: KubernetesApi, pod: Pod, *, reason: str, message: str) -> None:
    """Write ``Released=False`` with the reason when it is not what the Pod shows already."""
    patch = condition_patch(pod, CONDITION_RELEASED, "False", reason, message, services.clock.now())
    if patch is None:
        return
    try:
        api.patch_pod_status(pod.namespace, pod.name, patch)
    except KubernetesError as error:
        services.telemetry.warning("pod condition not written", pod=f"{pod.namespace}/{pod.name}", error=str(error))


def show_event(
    services: Services, api: KubernetesApi, pod: Pod, *, reason: str, message: str, type_: str = "Normal"
) -> None:
    """Record a core/v1 Event on the Pod, counted when it repeats."""
    record(api, pod, type_=type_, reason=reason, message=message, now=services.clock.now(), component=COMPONENT)


def show_rejection(services: Services, api: KubernetesApi, pod: Pod | None, claim: Claim) -> None:
    """Say on the Pod why its last candidate was given up."""
    if pod is None:
        return
    show_condition(services, api, pod, reason=claim.reason, message=claim.message)
    show_event(services, api, pod, reason="ProvisionRejected", message=claim.message, type_="Warning")


def show_waiting(services: Services, claim: Claim) -> None:
    """Say on a claim's Pod, if it still waits, what the claim waits for; for who has not read the Pod."""
    try:
        api = services.clusters.get(claim.cluster)
        found = api.get_pod(claim.namespace, claim.pod_name)
        pod = Pod.from_object(found) if found is not None else None
    except (KubernetesError, KeyError, MalformedPodError) as error:
        services.telemetry.warning("pod not told", claim_id=claim.claim_id, error=str(error))
        return
    if pod is not None and pod.uid == claim.pod_uid and pod.gated:
        show_condition(services, api, pod, reason=claim.reason, message=claim.message)


def show_let_go(services: Services, api: KubernetesApi, pod: Pod) -> None:
    """Say on a Pod whose gate somebody else took off that it is not ours any more: a gate cannot be put back."""
    message = "the gate was removed by somebody else: nothing is rented for this Pod any more"
    if pod.node_name is None:
        show_condition(services, api, pod, reason="GateRemoved", message=message)
    show_event(services, api, pod, reason="GateRemoved", message=message, type_="Warning")
