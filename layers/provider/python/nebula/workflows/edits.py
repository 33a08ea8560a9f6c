"""A Pod that is edited after its release: its instance runs on as it was bought, and the Pod says so (design §4)."""

from __future__ import annotations

from collections.abc import Mapping

from nebula.domain.claim import Claim, Phase
from nebula.kubernetes.api import KubernetesApi
from nebula.kubernetes.pod import Pod
from nebula.workflows.pod_report import show_event
from nebula.workflows.services import Services
from nebula.workflows.settle import project
from nebula.workflows.views import ClusterView


def warn_of_edits(services: Services, view: ClusterView, pods: Mapping[str, Pod]) -> None:
    """Warn released Pods whose fields are not those that their instance was made from; once a day at most."""
    for claim in view.claims:
        pod = pods.get(claim.pod_uid)
        if pod is None or claim.phase is not Phase.RELEASED or claim.pod_fields_hash is None or pod.terminal:
            continue
        fields = pod.fields_hash()
        if fields != claim.pod_fields_hash:
            message = f"changed after its release: instance {claim.instance_id} runs on as it was made"
            _warn(services, view.api, claim, pod, "ChangedAfterRelease", message, seen_as=fields)


def keep_opted_out(services: Services, api: KubernetesApi, claim: Claim, pod: Pod) -> None:
    """A released Pod whose opt-in label was removed is kept and warned, and its status stays true.

    It is in no list any more, so that the sweep's read is all that sees it. Raises the API's errors.
    """
    message = f"the opt-in label was removed: instance {claim.instance_id} runs until the Pod is deleted"
    _warn(services, api, claim, pod, "OptedOut", message)
    project(services, claim, api, pod)


def _warn(
    services: Services, api: KubernetesApi, claim: Claim, pod: Pod, reason: str, message: str, *, seen_as: str = ""
) -> None:
    now = services.clock.now()
    subject = f"{reason}/{claim.claim_id}/{seen_as[:16]}"
    if services.sightings.known(subject, now):
        return
    services.sightings.first_seen(subject, now)
    services.telemetry.warning("released pod was edited", claim_id=claim.claim_id, reason=reason)
    show_event(services, api, pod, reason=reason, message=message, type_="Warning")
