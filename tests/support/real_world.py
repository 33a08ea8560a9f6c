"""``World`` on a real API server: the functions' own handlers, with stand-ins for two controllers of Kubernetes."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from nebula.clock import ManualClock
from nebula.events.details import DetailType
from nebula.kubernetes.client import KubernetesClient
from nebula.kubernetes.transport import Transport
from nebula.providers.simulated import SimulatedProvider

from local.kubernetes.scheduler import unsuitable
from tests.support.handlers import batch, failed, handler
from tests.support.kubernetes_api import Api
from tests.support.kubernetes_apply import STRICT
from tests.support.world import CLUSTER, FixedClusters, World, pod_object

Object = dict[str, Any]
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"
PODS = "/api/v1/namespaces/default/pods"
_FUNCTIONS = ("placement", "provisioning", "status_polling")
_FOR_PLACEMENT = frozenset({"Pod Gated", "Pod Changed", "NodePool Changed", "Provision Rejected"})


class StrictCalls:
    """A transport whose writes the server validates field by field; remembers each verb and path."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.made: list[tuple[str, str]] = []

    @property
    def seconds(self) -> float:
        """As ``Transport.seconds``."""
        return self._transport.seconds

    def call(self, method: str, path: str, *, query: Mapping[str, str] | None = None, **rest: Any) -> Object:
        """As ``Transport.call``."""
        self.made.append((method, path))
        strict = STRICT if method in ("POST", "PATCH") else {}
        return self._transport.call(method, path, query={**(query or {}), **strict} or None, **rest)


class RealWorld(World):
    """One installation whose cluster is a real server. ``api`` is the functions' identity, ``raw`` an administrator.

    The simulated provider is called ``runpod``: the roles name that provider's Node.
    """

    def __init__(self, raw: Api, transport: Transport) -> None:
        clock = ManualClock(datetime.now(UTC).replace(microsecond=0))
        provider = SimulatedProvider(clock, name="runpod")
        super().__init__(provider, clock=clock)
        self.simulated = provider
        self.raw = raw
        self.calls = StrictCalls(transport)
        self.api = KubernetesClient(CLUSTER, self.calls)  # type: ignore[arg-type]
        self.clusters = FixedClusters(self.api)
        self._handlers = {name: handler(name, self) for name in _FUNCTIONS}

    def deliver(self, raw: Object) -> None:
        """Wake the handler that the template's rules name, with a batch of one."""
        due_for_placement = raw["detail-type"] == "Claim Due" and raw["detail"]["phase"] == "Pending"
        for_placement = due_for_placement or raw["detail-type"] in _FOR_PLACEMENT
        answer = self._handlers["placement" if for_placement else "provisioning"](batch(copy.deepcopy(raw)))
        assert failed(answer) == [], raw["detail-type"]

    def run(self, minutes: int) -> None:
        """Ticks from the queue and the schedule's bare event, to the handler of the status loop."""
        for _ in range(minutes):
            for _ in range(3):
                self._look("Status Tick")
            self._look("Status Poll Scheduled")

    def _look(self, detail_type: str) -> None:
        self.clock.advance(timedelta(seconds=15))
        due_at = self.clock.now().isoformat()
        event = {
            "source": "nebula.schedule",
            "detail-type": detail_type,
            "detail": {"schema_version": 1, "due_at": due_at},
        }
        answer = self._handlers["status_polling"](batch(event) if detail_type == "Status Tick" else event)
        assert not answer.get("batchItemFailures"), answer
        self.pump()

    def deploy(self, name: str, **changes: Any) -> Object:
        """Apply a Deployment without the gate, and do its controllers' part: a ReplicaSet, and its one Pod."""
        pod = pod_object(name, schedulingGates=None, **changes)
        labels = {**pod["metadata"]["labels"], "app": name}
        spec = {key: value for key, value in pod["spec"].items() if value is not None}
        template = {"metadata": {"labels": labels}, "spec": spec}
        body = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
        deployment = self._make(DEPLOYMENTS, "apps/v1", "Deployment", {"name": name}, body)
        owner = {"name": f"{name}-rs", "labels": labels, "ownerReferences": [_owner(deployment)]}
        replica_set = self._make(REPLICA_SETS, "apps/v1", "ReplicaSet", owner, deployment["spec"] | {"strategy": None})
        owned = {"name": name, "labels": labels, "ownerReferences": [_owner(replica_set)]}
        made = copy.deepcopy(replica_set["spec"]["template"]["spec"])
        return self._make(PODS, "v1", "Pod", owned, made)

    def pod(self, name: str = "train") -> Object | None:
        """The Pod as it stands."""
        status, found = self.raw.call("GET", f"{PODS}/{name}")
        return found if status == 200 else None

    def delete_pod(self, name: str = "train", *, announce: bool = True) -> None:
        """``kubectl delete pod``; the forwarder's ``Pod Deleted`` goes on the bus."""
        pod = self.pod(name)
        assert pod is not None
        self.raw.must("DELETE", f"{PODS}/{name}")
        if announce:
            self.announce(DetailType.POD_DELETED, pod)

    def bind(self) -> int:
        """The scheduler's part: bind what is ungated and suits a Node. Returns how many."""
        nodes = self.raw.must("GET", "/api/v1/nodes")["items"]
        pods = [pod for pod in self.raw.must("GET", PODS)["items"] if _waits(pod)]
        pairs = [(pod, node) for pod in pods for node in nodes if unsuitable(pod, node, {}) is None]
        for pod, node in pairs:
            name = pod["metadata"]["name"]
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}}
            target = {"kind": "Node", "name": node["metadata"]["name"]}
            self.raw.must("POST", f"{PODS}/{name}/binding", {**binding, "target": target})
        return len(pairs)

    def _make(self, path: str, version: str, kind: str, metadata: Object, spec: Object) -> Object:
        kept = {key: value for key, value in spec.items() if value is not None}
        body = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": kept}
        # The server adds what it derives (a Deployment's progress deadline), which the next kind does not know.
        return self.raw.must("POST", path, body)


def _waits(pod: Object) -> bool:
    return not pod["spec"].get("nodeName") and not pod["spec"].get("schedulingGates")


def _owner(obj: Object) -> Object:
    metadata = obj["metadata"]
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
