"""The virtual Node of a provider: there while claims live, kept Ready by Lease and status.

What a Node must carry and what a lapse does: https://kubernetes.io/docs/concepts/architecture/nodes/
and the node lifecycle controller, which compares a Lease's ``renewTime`` with the one it saw before
and never sets Ready back to True by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from nebula import __version__
from nebula.clock import parse_time
from nebula.kubernetes import names
from nebula.kubernetes.api import ConflictError, KubernetesApi, NotFoundError, Object
from nebula.kubernetes.node_fit import pod_problems
from nebula.kubernetes.pod import Pod
from nebula.kubernetes.times import format_micro_time, format_time

LEASE_SECONDS: Final = 40
#: Conditions' heartbeat times are refreshed this often; the Lease carries the beat in between.
STATUS_REFRESH: Final = timedelta(seconds=60)
#: ``ensure_node`` renews a Lease that is older than this: ticks come sooner while all is well.
ENSURE_MIN_AGE: Final = timedelta(seconds=20)
#: A beat from further ahead than this is a wrong clock's: believing it would let the Node lapse until then.
CLOCK_SKEW: Final = timedelta(seconds=5)
#: Never the limit: the scheduler counts every Pod of the provider on this one Node.
CAPACITY: Final[Mapping[str, str]] = {
    "cpu": "1M",
    "memory": "1Pi",
    "ephemeral-storage": "1Pi",
    "pods": "1M",
    names.RESOURCE_GPU: "1M",
}
_VERSION_PREFIX: Final = "nebula-v"
_CONDITIONS: Final = (
    ("Ready", "True", "NebulaReady", "the control plane answers for this Node"),
    ("MemoryPressure", "False", "NebulaHasNoLimit", "capacity belongs to the provider"),
    ("DiskPressure", "False", "NebulaHasNoLimit", "capacity belongs to the provider"),
    ("PIDPressure", "False", "NebulaHasNoLimit", "capacity belongs to the provider"),
    ("NetworkUnavailable", "False", "NebulaHasNoNetwork", "Pods run outside the cluster network"),
)


@dataclass(frozen=True)
class NodeState:
    """A provider's Node: whether Pods can be bound to it now, and if not, why."""

    ready: bool
    problem: str = ""
    object: Object | None = None


def node_name(provider: str) -> str:
    """``nebula-<provider>``; also the Lease's name."""
    return f"nebula-{provider}"


def ensure_node(api: KubernetesApi, provider: str, now: datetime) -> NodeState:
    """Create or repair the provider's Node and its Lease. Raises what the API raises.

    Right after creation the API server's own ``not-ready`` taint keeps Pods off for some seconds; our
    Pods tolerate it, so a Node whose Ready condition is True counts as ready. A Lease that the ticks
    keep fresh is left to them, so that placing many Pods costs no writes here.
    """
    node, _ = _upkeep(api, provider, now, ENSURE_MIN_AGE)
    return state_of(node)


def beat(api: KubernetesApi, provider: str, now: datetime, *, min_age: timedelta) -> bool:
    """Renew the Lease and the conditions; False when the Lease was renewed less than ``min_age`` ago.

    A missing Node is recreated and a lapsed one repaired, whatever the Lease's age; one that is not ours is left alone.
    """
    _, renewed = _upkeep(api, provider, now, min_age)
    return renewed


def _upkeep(api: KubernetesApi, provider: str, now: datetime, min_age: timedelta) -> tuple[Object, bool]:
    """The Node as it stands after repair, and whether the Lease was renewed."""
    name = node_name(provider)
    lease, node = api.get_lease(name), api.get_node(name)
    if node is None:
        node = _created(api, provider, now)
    if not is_ours(node):
        return node, True
    if _needs_repair(node) or abs(now - _last_heartbeat(node)) >= STATUS_REFRESH:
        node = api.patch_node_status(name, {"status": _status(node, now)})
    elif lease is not None and _owned(lease, node) and now - min_age < _renewed_at(lease) <= now + CLOCK_SKEW:
        return node, False
    _renew(api, name, node, lease, now)
    return node, True


def remove_node(api: KubernetesApi, provider: str) -> None:
    """Delete the Node; its Lease follows by its owner reference. Absent is success.

    Kubernetes' garbage collector ends every Pod that is still bound to it within about a minute:
    only for a Node to which no Pod is bound.
    """
    api.delete_node(node_name(provider))


def node_problems(pod: Pod, node_object: Mapping[str, Any]) -> tuple[str, ...]:
    """Why the Pod could not be bound to this Node, one line each; empty when it could."""
    return pod_problems(pod, node_object)


def node_object(provider: str, now: datetime) -> Object:
    """The Node as it is created, with its status.

    No ``kubernetes.io/os`` or ``arch`` label: they are what cluster add-ons' DaemonSets select by, and
    those tolerate every taint. No providerID and no address: a cloud controller would look for the
    machine, and ``kubectl logs`` would wait for it.
    """
    name = node_name(provider)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                names.LABEL_PROVIDER: provider,
                "kubernetes.io/hostname": name,
                "type": "virtual-kubelet",
                "node.kubernetes.io/exclude-from-external-load-balancers": "true",
                "node.kubernetes.io/exclude-disruption": "true",
            },
        },
        "spec": {"taints": [{"key": names.TAINT_PROVIDER, "value": provider, "effect": "NoSchedule"}]},
        "status": {**_status({}, now), "nodeInfo": _node_info()},
    }


def _created(api: KubernetesApi, provider: str, now: datetime) -> Object:
    try:
        return api.create_node(node_object(provider, now))
    except ConflictError:
        found = api.get_node(node_name(provider))
        if found is None:
            raise
        return found


def state_of(node: Object, *, repaired: bool = False) -> NodeState:
    """Whether Pods can be bound to the Node as it stands, or as it would stand after a repair."""
    if (node.get("metadata", {}).get("labels") or {}).get(names.LABEL_PROVIDER) is None:
        return NodeState(False, f"a Node of this name exists without label {names.LABEL_PROVIDER}", node)
    ready = "True" if repaired else _live_condition(node, "Ready").get("status")
    if ready != "True":
        return NodeState(False, f"Ready is {ready or 'missing'}", node)
    return NodeState(True, "", node)


def is_ours(node: Mapping[str, Any]) -> bool:
    """Whether a Node of a provider's name was made by us, though somebody may have taken its label since.

    Somebody's own machine of that name is neither written nor deleted: what we say of a Node is not true of it.
    """
    labelled = (node.get("metadata", {}).get("labels") or {}).get(names.LABEL_PROVIDER) is not None
    info = (node.get("status") or {}).get("nodeInfo") or {}
    return labelled or str(info.get("kubeletVersion") or "").startswith(_VERSION_PREFIX)


def _status(node: Mapping[str, Any], now: datetime) -> Object:
    """Capacity and conditions; a transition time moves only with its status."""
    conditions = []
    for type_, status, reason, message in _CONDITIONS:
        live = _live_condition(node, type_)
        since = live.get("lastTransitionTime") if live.get("status") == status else None
        conditions.append(
            {
                "type": type_,
                "status": status,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": format_time(now),
                "lastTransitionTime": since or format_time(now),
            }
        )
    return {"capacity": dict(CAPACITY), "allocatable": dict(CAPACITY), "conditions": conditions}


def _needs_repair(node: Mapping[str, Any]) -> bool:
    """A lapsed condition, or a resource that an older release did not list."""
    wrong = any(_live_condition(node, type_).get("status") != status for type_, status, _, _ in _CONDITIONS)
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    return wrong or not set(CAPACITY) <= set(allocatable)


def _live_condition(node: Mapping[str, Any], type_: str) -> Mapping[str, Any]:
    found = (node.get("status") or {}).get("conditions") or []
    return next((c for c in found if isinstance(c, Mapping) and c.get("type") == type_), {})


def _last_heartbeat(node: Mapping[str, Any]) -> datetime:
    return parse_time(_live_condition(node, "Ready").get("lastHeartbeatTime")) or _EPOCH


def _renewed_at(lease: Mapping[str, Any]) -> datetime:
    return parse_time((lease.get("spec") or {}).get("renewTime")) or _EPOCH


def _owned(lease: Mapping[str, Any], node: Mapping[str, Any]) -> bool:
    owners = lease.get("metadata", {}).get("ownerReferences") or []
    return any(owner.get("uid") == node.get("metadata", {}).get("uid") for owner in owners)


def _renew(api: KubernetesApi, name: str, node: Object, lease: Object | None, now: datetime) -> None:
    """Write a ``renewTime`` strictly later than the last: another function's clock may be ahead.

    A lost race over the creation is left at that: somebody has just renewed it.
    """
    try:
        if lease is not None:
            renewed = max(now, _renewed_at(lease) + timedelta(microseconds=1))
            api.patch_lease(name, _lease(name, node, renewed))
            return
    except NotFoundError:
        pass  # taken down with an earlier Node of this name
    with suppress(ConflictError):
        api.create_lease(_lease(name, node, now))


def _lease(name: str, node: Mapping[str, Any], renewed: datetime) -> Object:
    """The Lease, owned by the Node as it is now: a stale owner would take it down."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node.get("metadata", {}).get("uid")}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": names.KUBE_NODE_LEASE, "ownerReferences": [owner]},
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": format_micro_time(renewed),
        },
    }


def _node_info() -> Object:
    """All ten strings: stricter clients than the API server insist on them."""
    return {
        "architecture": "",
        "bootID": "",
        "containerRuntimeVersion": "",
        "kernelVersion": "",
        "kubeProxyVersion": "",
        "kubeletVersion": f"{_VERSION_PREFIX}{__version__}",
        "machineID": "",
        "operatingSystem": "",
        "osImage": "",
        "systemUUID": "",
    }


_EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
