"""Reading a claim's Pod again at act time: an event is a hint, the API server decides."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from nebula.domain.claim import Claim
from nebula.kubernetes.api import ClusterUnavailableError, KubernetesApi
from nebula.kubernetes.node import node_name, node_problems, state_of
from nebula.kubernetes.pod import Pod


class Standing(StrEnum):
    """What a claim's Pod is to us now."""

    READY = "Ready"
    GONE = "Gone"
    RELEASED = "Released"
    OPTED_OUT = "OptedOut"
    UNGATED = "Ungated"
    FOREIGN_GATES = "ForeignGates"


@dataclass(frozen=True)
class PodReading:
    """The Pod as read (None when gone) and what it is to us."""

    standing: Standing
    pod: Pod | None = None
    detail: str = ""


def read_pod(api: KubernetesApi, claim: Claim) -> PodReading:
    """Read the claim's Pod strongly and say what it is to us.

    A Pod of the same name with another uid is another Pod: ours is gone. Raises
    ``ClusterUnavailableError`` when nobody answers: that is unknown, not gone.
    """
    found = api.get_pod(claim.namespace, claim.pod_name)
    pod = Pod.from_object(found) if found is not None else None
    if pod is None or pod.uid != claim.pod_uid:
        confirm_cluster(api, claim)
        return PodReading(Standing.GONE, detail="the Pod is gone")
    if pod.deletion_timestamp is not None:
        return PodReading(Standing.GONE, pod, "the Pod is being deleted")
    if not pod.gated:
        ours = pod.claim_annotation == claim.claim_id
        return PodReading(Standing.RELEASED if ours else Standing.UNGATED, pod, "the gate is gone")
    if not pod.enabled:
        return PodReading(Standing.OPTED_OUT, pod, "the opt-in label was removed")
    if pod.foreign_gates:
        return PodReading(Standing.FOREIGN_GATES, pod, f"other gates hold the Pod: {', '.join(pod.foreign_gates)}")
    return PodReading(Standing.READY, pod)


def confirm_cluster(api: KubernetesApi, claim: Claim) -> None:
    """Make sure that what lacks a claim's Pod is the cluster in which the Pod was found.

    Raises ``ClusterUnavailableError`` when another one answers under the name: its silence says nothing.
    """
    if claim.cluster_uid and api.cluster_uid() != claim.cluster_uid:
        raise ClusterUnavailableError(f"another cluster answers as {api.name}")


def node_trouble(api: KubernetesApi, provider: str, pod: Pod) -> str:
    """Why the Pod could not run on the provider's Node now; empty when it could.

    Checked before anything is bought and again before release: a Pod that cannot bind would wait
    beside a paid instance.
    """
    node = api.get_node(node_name(provider))
    if node is None:
        return f"Node {node_name(provider)} does not exist"
    state = state_of(node)
    if not state.ready:
        return f"Node {node_name(provider)}: {state.problem}"
    return "; ".join(node_problems(pod, node))
