"""Stand-ins for the controllers that own Pods: Deployment, Job and StatefulSet, as far as a Pod's status moves them.

Rules: https://kubernetes.io/docs/concepts/workloads/controllers/ . A ReplicaSet replaces Pods that ended; a Job
counts by phase, once for each uid, and lets a Pod go by removing its finalizer; a StatefulSet goes in order.
"""

from __future__ import annotations

import copy
from datetime import datetime, timedelta
from typing import Any

from local.kubernetes.resources import PODS
from tests.support.world import World, pod_object, running

Object = dict[str, Any]
TRACKED = "batch.kubernetes.io/job-tracking"
_ENDED = ("Succeeded", "Failed")


def phase(pod: Object) -> str:
    return str(pod.get("status", {}).get("phase"))


class Owner:
    """What all of them have: a kind, a name, and Pods that name it."""

    kind = ""

    def __init__(self, world: World, name: str, **spec: Any) -> None:
        self.world = world
        self.name = name
        self._spec = spec
        self._made = 0

    def pods(self) -> list[Object]:
        """The Pods that it owns, those that are being deleted included."""
        found = [copy.deepcopy(record.object) for record in self.world.emulator.store.records(PODS, "default")]
        return [p for p in found if any(o["name"] == self.name for o in p["metadata"].get("ownerReferences", []))]

    def create(self, name: str, **metadata: Any) -> None:
        """A Pod of its template; nobody announces it."""
        pod = pod_object(name, **copy.deepcopy(self._spec))
        owner = {
            "apiVersion": "v1",
            "kind": self.kind,
            "name": self.name,
            "uid": f"uid-{self.name}",
            "controller": True,
        }
        pod["metadata"] |= {"ownerReferences": [owner], **metadata}
        self.world.emulator.create(PODS, "default", pod)
        self._made += 1

    def step(self) -> None:
        """Look once, and act."""
        raise NotImplementedError

    def run(self, minutes: int) -> None:
        """Let the installation and the owner live."""
        for _ in range(minutes):
            self.step()
            self.world.minute()
        self.step()


class Deployment(Owner):
    """Its ReplicaSet, in effect."""

    kind = "ReplicaSet"

    def __init__(self, world: World, replicas: int, *, min_ready: timedelta = timedelta(0), **spec: Any) -> None:
        super().__init__(world, "server", **spec)
        self._replicas = replicas
        self._min_ready = min_ready

    def step(self) -> None:
        active = [p for p in self.pods() if phase(p) not in _ENDED and "deletionTimestamp" not in p["metadata"]]
        for _ in range(self._replicas - len(active)):
            self.create(f"server-{self._made}")

    def available(self) -> int:
        """Replicas that have been Ready for ``minReadySeconds``."""
        return sum(1 for pod in self.pods() if running(pod) and self._long_ready(pod))

    def _long_ready(self, pod: Object) -> bool:
        (ready,) = [c for c in pod["status"]["conditions"] if c["type"] == "Ready"]
        since = datetime.fromisoformat(ready["lastTransitionTime"])
        return self.world.clock.now() - since >= self._min_ready


class Job(Owner):
    """One completion; ``fail_on`` are exit codes of ``FailJob``, and disruptions are ignored."""

    kind = "Job"

    def __init__(self, world: World, *, backoff_limit: int = 0, fail_on: tuple[int, ...] = ()) -> None:
        super().__init__(world, "fine-tune", restartPolicy="Never")
        self._backoff_limit = backoff_limit
        self._fail_on = fail_on
        self._counted: set[str] = set()
        self.succeeded = 0
        self.failed = 0
        self.result = ""

    def step(self) -> None:
        for pod in self.pods():
            if phase(pod) in _ENDED and pod["metadata"]["uid"] not in self._counted:
                self._count(pod)
        if not self.result and all(phase(pod) in _ENDED for pod in self.pods()):
            self.create(f"fine-tune-{self._made}", finalizers=[TRACKED])

    def delete_pods(self) -> None:
        """As when it is suspended: its Pods are deleted, and counted once they are terminal."""
        for pod in self.pods():
            self.world.delete_pod(pod["metadata"]["name"])

    def _count(self, pod: Object) -> None:
        self._counted.add(pod["metadata"]["uid"])
        if phase(pod) == "Succeeded":
            self.succeeded += 1
            self.result = self.result or "Complete"
        else:
            self._count_failure(pod)
        left = [name for name in pod["metadata"].get("finalizers", []) if name != TRACKED]
        self.world.api.patch_pod("default", pod["metadata"]["name"], {"metadata": {"finalizers": left or None}})

    def _count_failure(self, pod: Object) -> None:
        if any(c["type"] == "DisruptionTarget" and c["status"] == "True" for c in pod["status"]["conditions"]):
            return
        codes = [s["state"]["terminated"]["exitCode"] for s in pod["status"].get("containerStatuses", [])]
        self.failed += 1
        if any(code in self._fail_on for code in codes):
            self.result = self.result or "PodFailurePolicy"
        elif self.failed > self._backoff_limit:
            self.result = self.result or "BackoffLimitExceeded"


class StatefulSet(Owner):
    """OrderedReady: the next ordinal waits for the one before; a Pod that ended is deleted and made anew."""

    kind = "StatefulSet"

    def __init__(self, world: World, replicas: int) -> None:
        super().__init__(world, "indexer")
        self._replicas = replicas

    def step(self) -> None:
        for ordinal in range(self._replicas):
            name = f"indexer-{ordinal}"
            pod = self.world.pod(name)
            if pod is not None and phase(pod) in _ENDED and "deletionTimestamp" not in pod["metadata"]:
                self.world.delete_pod(name)
                pod = self.world.pod(name)
            if pod is None:
                self.create(name)
                return
            if not running(pod):
                return

    def ready(self) -> list[str]:
        """Names of the Pods that run, in order."""
        return sorted(pod["metadata"]["name"] for pod in self.pods() if running(pod))
