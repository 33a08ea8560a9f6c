"""Stand-ins for the controllers whose acts the product must live with.

Namespace deletion and the removal of the not-ready taint happen by themselves. ``lapse`` and ``collect_garbage``
do, when a test says so, what node-lifecycle and PodGC do on their own clocks.
"""

from __future__ import annotations

from nebula.clock import Clock

from local.kubernetes import deletion, kind_rules, objects
from local.kubernetes.errors import Object
from local.kubernetes.metadata import timestamp
from local.kubernetes.resources import NAMESPACES, NODES, PODS, RESOURCES
from local.kubernetes.storage import Change, Key, Store

_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")
_UNKNOWN = "NodeStatusUnknown"
_STOPPED = "Kubelet stopped posting node status."


class Controllers:
    """Listens to the store and acts when ``run`` is called. All under the store's lock."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._nodes: set[Key] = set()
        self._terminating: set[str] = set()
        store.listeners.append(self._note)

    def run(self) -> None:
        """Untaint Nodes that became ready; empty and remove terminating namespaces."""
        nodes, self._nodes = self._nodes, set()
        for key in sorted(nodes):
            self._untaint(key)
        for namespace in sorted(self._terminating):
            self._empty(namespace)

    def lapse(self, name: str) -> None:
        """What happens when a Node's heartbeat stops: conditions Unknown, taints, its Pods not ready."""
        with self._store.lock:
            record = self._store.get(NODES, ("", name))
            if record is None:
                return
            node = record.object
            now = timestamp(self._clock.now())
            status = node.get("status") or {}
            for kind in ("Ready", *_PRESSURES):
                condition = {"type": kind, "status": "Unknown", "reason": _UNKNOWN, "message": _STOPPED}
                status = objects.with_condition(status, {**condition, "lastTransitionTime": now})
            taints = _without((node.get("spec") or {}).get("taints"), kind_rules.UNREACHABLE)
            taints += [{"key": kind_rules.UNREACHABLE, "effect": effect} for effect in ("NoSchedule", "NoExecute")]
            spec = {**(node.get("spec") or {}), "taints": taints}
            self._store.write(NODES, ("", name), {**node, "spec": spec, "status": status})
            for key, pod in self._pods_of(name):
                self._not_ready(key, pod, now)

    def collect_garbage(self) -> int:
        """PodGC: Pods of Nodes that are gone fail and are deleted at once. Returns how many."""
        with self._store.lock:
            orphans = [
                record.object
                for record in self._store.records(PODS)
                if (node := record.object["spec"].get("nodeName")) and self._store.get(NODES, ("", node)) is None
            ]
            for pod in orphans:
                self._force(pod)
            self.run()
            return len(orphans)

    def _note(self, change: Change) -> None:
        if change.resource is NODES and change.type != "DELETED":
            self._nodes.add(change.key)
        if change.resource is NAMESPACES and "deletionTimestamp" in change.record.object["metadata"]:
            self._terminating.add(change.key[1])

    def _untaint(self, key: Key) -> None:
        record = self._store.get(NODES, key)
        if record is None or not kind_rules.ready(record.object):
            return
        node = record.object
        taints = (node.get("spec") or {}).get("taints") or []
        left = _without(_without(taints, kind_rules.NOT_READY), kind_rules.UNREACHABLE)
        if left != taints:
            self._store.write(NODES, key, {**node, "spec": {**node["spec"], "taints": left}})

    def _empty(self, namespace: str) -> None:
        left = 0
        for resource in RESOURCES:
            if not resource.namespaced:
                continue
            for record in self._store.records(resource, namespace):
                key = (namespace, record.object["metadata"]["name"])
                if "deletionTimestamp" not in record.object["metadata"]:
                    deletion.delete(self._store, resource, key, {}, self._clock.now())
                left += self._store.get(resource, key) is not None
        found = self._store.get(NAMESPACES, ("", namespace))
        if not left:
            self._terminating.discard(namespace)
            if found is not None:
                self._store.remove(NAMESPACES, ("", namespace), found.object)

    def _pods_of(self, node: str) -> list[tuple[Key, Object]]:
        found = [record.object for record in self._store.records(PODS)]
        return [
            ((pod["metadata"]["namespace"], pod["metadata"]["name"]), pod)
            for pod in found
            if pod["spec"].get("nodeName") == node
        ]

    def _not_ready(self, key: Key, pod: Object, now: str) -> None:
        conditions = (pod.get("status") or {}).get("conditions") or []
        if not any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions):
            return
        condition = {"type": "Ready", "status": "False", "reason": "NodeNotReady", "lastTransitionTime": now}
        self._store.write(PODS, key, {**pod, "status": objects.with_condition(pod["status"], condition)})

    def _force(self, pod: Object) -> None:
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        now = self._clock.now()
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists",
            "lastTransitionTime": timestamp(now),
        }
        status = objects.with_condition({**(pod.get("status") or {}), "phase": "Failed"}, condition)
        self._store.write(PODS, key, {**pod, "status": status})
        deletion.delete(self._store, PODS, key, {"gracePeriodSeconds": 0}, now)


def _without(taints: list[Object] | None, key: str) -> list[Object]:
    return [taint for taint in taints or [] if taint.get("key") != key]
