"""What a person does with kubectl, over the local Kubernetes API: create, look, delete."""

from __future__ import annotations

from typing import Any

import requests

from local.deployment import Endpoints

_TIMEOUT_SECONDS = 10
_PATHS = {
    "Pod": "/api/v1/namespaces/{namespace}/pods",
    "Secret": "/api/v1/namespaces/{namespace}/secrets",
    "ConfigMap": "/api/v1/namespaces/{namespace}/configmaps",
    "Event": "/api/v1/namespaces/{namespace}/events",
    "NodePool": "/apis/nebula.inftyai.com/v1alpha1/nodepools",
    "Node": "/api/v1/nodes",
}
_ASSIGNED = ("uid", "resourceVersion", "generation", "creationTimestamp", "selfLink")


class KubectlError(Exception):
    """The API refused; the message is its own."""


class Kubectl:
    """A user of one cluster."""

    def __init__(self, endpoints: Endpoints, namespace: str = "default") -> None:
        self._server = endpoints.kubernetes
        self._namespace = namespace
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers["Authorization"] = f"Bearer {endpoints.cluster_token}"
        self._session.headers["User-Agent"] = "kubectl/v1.31.0 (linux/amd64)"

    def create(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Create an object, without what only the server may say of it. ``KubectlError``."""
        metadata = {key: value for key, value in obj["metadata"].items() if key not in _ASSIGNED}
        body = {key: value for key, value in obj.items() if key != "status"} | {"metadata": metadata}
        return self._call("POST", self._path(obj["kind"]), body)

    def get(self, kind: str, name: str) -> dict[str, Any] | None:
        """One object, or None."""
        try:
            return self._call("GET", f"{self._path(kind)}/{name}")
        except _NotFoundError:
            return None

    def replace(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Write a changed object back, on the condition that it is still the one that was read. ``KubectlError``."""
        return self._call("PUT", f"{self._path(obj['kind'])}/{obj['metadata']['name']}", obj)

    def list(self, kind: str) -> list[dict[str, Any]]:
        """Every object of a kind in the namespace."""
        items: list[dict[str, Any]] = self._call("GET", self._path(kind))["items"]
        return items

    def delete(self, kind: str, name: str) -> None:
        """Ask for its deletion; absent is fine."""
        try:
            self._call("DELETE", f"{self._path(kind)}/{name}")
        except _NotFoundError:
            return

    def _path(self, kind: str) -> str:
        return _PATHS[kind].format(namespace=self._namespace)

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        response = self._session.request(method, self._server + path, json=body, timeout=_TIMEOUT_SECONDS)
        if response.status_code == requests.codes.not_found and method != "POST":
            raise _NotFoundError(path)
        if not response.ok:
            raise KubectlError(f"{method} {path}: {response.json().get('message', response.status_code)}")
        answer: dict[str, Any] = response.json()
        return answer


class _NotFoundError(KubectlError):
    """404."""
