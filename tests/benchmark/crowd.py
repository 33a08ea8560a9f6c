"""A user of the cluster: creates Pods, watches them, deletes them. Raw HTTP, so that it costs next to nothing."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

from nebula.kubernetes.names import GATE

from tests.benchmark.children import TOKEN

_PODS = "/api/v1/namespaces/default/pods"


def _headers(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}


class UnmeasuredError(Exception):
    """Something could not be measured; the message says what and why."""


class Watch:
    """Follows every Pod of the cluster as ``kubectl get --watch`` would, and notes when it shows what."""

    def __init__(self, url: str, token: str = TOKEN) -> None:
        self._headers = _headers(token)
        self._changed = threading.Condition()
        self._times: dict[str, dict[str, float]] = defaultdict(dict)
        self._counts: dict[str, int] = defaultdict(int)
        self._broken = ""
        self._host = urlsplit(url).netloc
        threading.Thread(target=self._run, daemon=True).start()

    @property
    def times(self) -> dict[str, dict[str, float]]:
        """When each Pod, by uid, showed each stage."""
        with self._changed:
            return {uid: dict(stages) for uid, stages in self._times.items()}

    def wait(self, stage: str, pods: int, quiet: float, check: Callable[[], None] = lambda: None) -> None:
        """Wait until so many Pods reached a stage, and call ``check`` meanwhile.

        ``UnmeasuredError`` when for ``quiet`` seconds nothing at all advanced.
        """
        with self._changed:
            before, since = -1, time.monotonic()
            while self._counts[stage] < pods:
                advanced = sum(self._counts.values())
                if advanced != before:
                    before, since = advanced, time.monotonic()
                if self._broken or time.monotonic() - since > quiet:
                    raise UnmeasuredError(
                        f"{self._counts[stage]} of {pods} Pods reached {stage}, then nothing moved for {quiet:g} s"
                    )
                self._changed.wait(1.0)
                check()

    def _run(self) -> None:
        try:
            connection = http.client.HTTPConnection(self._host, timeout=600)
            connection.request("GET", f"{_PODS}?watch=true&timeoutSeconds=1800", headers=self._headers)
            for line in connection.getresponse():
                self._note(json.loads(line))
        except (OSError, ValueError, http.client.HTTPException) as error:
            self._broken = str(error)
        with self._changed:
            self._broken = self._broken or "the watch ended"
            self._changed.notify_all()

    def _note(self, told: dict[str, Any]) -> None:
        now = time.monotonic()
        pod = told["object"]
        with self._changed:
            seen = self._times[pod["metadata"]["uid"]]
            for stage in shown(pod, gone=told["type"] == "DELETED"):
                if stage not in seen:
                    seen[stage] = now
                    self._counts[stage] += 1
            self._changed.notify_all()


def shown(pod: dict[str, Any], *, gone: bool) -> Iterable[str]:
    """The stages that a version of a Pod shows."""
    status = pod.get("status") or {}
    yield "created"
    if all(gate["name"] != GATE for gate in pod["spec"].get("schedulingGates") or ()):
        yield "released"
    if pod["spec"].get("nodeName"):
        yield "bound"
    if status.get("phase") == "Running":
        yield "Running"
    if any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or ()):
        yield "Ready"
    if pod["metadata"].get("deletionTimestamp"):
        yield "deleting"
    if gone:
        yield "Pod gone"


class Crowd:
    """Sends the creates and the deletes one after the other on one connection."""

    def __init__(self, url: str, token: str = TOKEN) -> None:
        self._headers = _headers(token)
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)

    def create(self, obj: dict[str, Any], path: str = _PODS) -> str:
        """Create an object, a Pod where no path is given; its uid."""
        return str(self._call("POST", path, obj)["metadata"]["uid"])

    def delete(self, name: str) -> None:
        """``kubectl delete --wait=false``."""
        self._call("DELETE", f"{_PODS}/{name}", None)

    def _call(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        self._connection.request(method, path, None if body is None else json.dumps(body), self._headers)
        response = self._connection.getresponse()
        answer: dict[str, Any] = json.loads(response.read())
        if response.status >= 300:
            raise RuntimeError(f"{method} {path}: {response.status} {answer.get('message')}")
        return answer
