"""A Pod that asks for what it cannot have any more, and is told so.

Edited after its release: its instance runs on as it was bought. Opted in without the gate: nothing is rented.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from nebula.domain.claim import Claim, Phase, claim_id_for
from nebula.kubernetes import names
from nebula.kubernetes.api import KubernetesApi
from nebula.kubernetes.node import node_name
from nebula.kubernetes.pod import Pod
from nebula.workflows.pod_report import show_event
from nebula.workflows.readable import claim_at
from nebula.workflows.services import Services
from nebula.workflows.settle import project
from nebula.workflows.views import ClusterView

#: Ungated Pods looked at in one sweep of a cluster.
_AT_ONCE: Final = 20
_NOT_GATED: Final = (
    f"opted in without the gate {names.GATE}, which a Pod has from its creation or never: nothing is rented for it"
)


def warn_of_edits(services: Services, view: ClusterView, pods: Mapping[str, Pod]) -> None:
    """Warn released Pods whose fields are not those that their instance was made from; once a day at most."""
    for claim in view.claims:
        pod = pods.get(claim.pod_uid)
        if pod is None or claim.phase is not Phase.RELEASED or claim.pod_fields_hash is None or pod.terminal:
            continue
        fields = pod.fields_hash()
        if fields != claim.pod_fields_hash:
            message = f"changed after its release: instance {claim.instance_id} runs on as it was made"
            _warn(services, view.api, claim.claim_id, pod, "ChangedAfterRelease", message, seen_as=fields)


def keep_opted_out(services: Services, api: KubernetesApi, claim: Claim, pod: Pod) -> None:
    """A released Pod whose opt-in label was removed is kept and warned, and its status stays true.

    It is in no list any more, so that the sweep's read is all that sees it. Raises the API's errors.
    """
    message = f"the opt-in label was removed: instance {claim.instance_id} runs until the Pod is deleted"
    _warn(services, api, claim.claim_id, pod, "OptedOut", message)
    project(services, claim, api, pod)


def warn_of_ungated(services: Services, view: ClusterView, pods: Mapping[str, Pod]) -> None:
    """Warn opted-in Pods that wait, or sit on a Node of ours, without ever having had the gate; once a day at most.

    A few each minute, and others the next: each costs two reads of the ledgers.
    """
    claimed = {claim.pod_uid for claim in view.claims}
    places = {None, *(node_name(provider) for provider in services.providers.names())}
    found = [pod for pod in pods.values() if not pod.gated and pod.uid not in claimed and _waits(pod, places)]
    start = int(services.clock.now().timestamp()) // 60 * _AT_ONCE % len(found) if found else 0
    for pod in (found[start:] + found[:start])[:_AT_ONCE]:
        claim_id = claim_id_for(view.api.name, pod.uid)
        if claim_at(services, claim_id) is None:
            _warn(services, view.api, claim_id, pod, "NotGated", _NOT_GATED)


def _waits(pod: Pod, places: Collection[str | None]) -> bool:
    return pod.node_name in places and not pod.terminal and pod.deletion_timestamp is None


def _warn(
    services: Services, api: KubernetesApi, claim_id: str, pod: Pod, reason: str, message: str, *, seen_as: str = ""
) -> None:
    now = services.clock.now()
    subject = f"{reason}/{claim_id}/{seen_as[:16]}"
    if services.sightings.known(subject, now):
        return
    services.sightings.first_seen(subject, now)
    services.telemetry.warning("pod warned", claim_id=claim_id, reason=reason)
    show_event(services, api, pod, reason=reason, message=message, type_="Warning")
