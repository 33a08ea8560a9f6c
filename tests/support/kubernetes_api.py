"""One way to talk to any Kubernetes API: the emulator in process, the emulator over HTTP, a real server."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import requests
from nebula.kubernetes.client import KubernetesClient

Object = dict[str, Any]
STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
GATE = "nebula.inftyai.com/provider-selection"
NODE_POOLS = "/apis/nebula.inftyai.com/v1alpha1/nodepools"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


class Api:
    """Raw calls with their status, beside the real client; every instance works in a namespace of its own."""

    def __init__(self, session: requests.Session, server: str, client: KubernetesClient) -> None:
        self.client = client
        self._session = session
        self._server = server
        self.namespace = unique("test")
        self.must("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        self.pods = f"/api/v1/namespaces/{self.namespace}/pods"

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> tuple[int, Object]:
        """Status and decoded body (empty when it is no JSON object)."""
        response = self._session.request(
            method,
            self._server + path,
            params=query,
            data=None if body is None else json.dumps(body),
            headers={"Content-Type": content_type},
            timeout=10,
        )
        try:
            decoded = response.json()
        except ValueError:
            decoded = {}
        return response.status_code, decoded if isinstance(decoded, dict) else {}

    def must(self, method: str, path: str, body: Any = None, **options: Any) -> Object:
        """The body of a call that must succeed."""
        status, answer = self.call(method, path, body, **options)
        assert status < 300, answer
        return answer

    def patch(self, path: str, body: Any, content_type: str = STRATEGIC) -> tuple[int, Object]:
        """A patch; strategic unless said."""
        return self.call("PATCH", path, body, content_type=content_type)

    def pod(self, name: str = "", **changes: Any) -> Object:
        """Create a gated Pod; ``changes`` replace parts of metadata and spec."""
        return self.must("POST", self.pods, pod_object(name or unique("pod"), **changes))

    def bound(self, name: str = "", **changes: Any) -> Object:
        """Create an ungated Pod and bind it to a Node that need not exist."""
        created = self.pod(name, schedulingGates=None, **changes)
        name = created["metadata"]["name"]
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}}
        self.must("POST", f"{self.pods}/{name}/binding", {**binding, "target": {"kind": "Node", "name": "nebula-test"}})
        return self.must("GET", f"{self.pods}/{name}")

    def watch(self, path: str, version: str, count: int, **query: str) -> list[Object]:
        """The first ``count`` events from a version on, or what comes in a second."""
        return list(islice(self._events(path, {"resourceVersion": version, "timeoutSeconds": "1", **query}), count))

    def _events(self, path: str, query: Mapping[str, str]) -> Iterator[Object]:
        parameters = {"watch": "true", **query}
        with self._session.get(self._server + path, params=parameters, stream=True, timeout=10) as response:
            if response.status_code != 200:
                yield {"type": "ERROR", "object": response.json()}
                return
            for line in response.iter_lines():
                yield json.loads(line)


def unique(prefix: str) -> str:
    """A name that no other test has."""
    return f"{prefix}-{secrets.token_hex(4)}"


def pod_object(name: str, labels: Mapping[str, str] | None = None, **spec: Any) -> Object:
    """A gated Pod as ``kubectl`` sends one; None removes a field of the spec."""
    base: Object = {
        "schedulingGates": [{"name": GATE}],
        "containers": [{"name": "main", "image": "busybox:1.36"}],
    }
    merged = {key: value for key, value in {**base, **spec}.items() if value is not None}
    metadata = {"name": name, "labels": dict(labels or {"nebula.inftyai.com/enabled": "true"})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": merged}


def conditions(obj: Object) -> dict[str, Object]:
    """Conditions by type."""
    return {item["type"]: item for item in obj.get("status", {}).get("conditions") or []}
