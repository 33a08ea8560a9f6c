"""The thin Kubernetes client: exactly the calls that the control plane makes (``docs/kubernetes.md``).

Paths and verbs: https://kubernetes.io/docs/reference/kubernetes-api/ . Each method is one verb of
``cluster/rbac``; a test compares the two.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

from nebula.kubernetes.api import ClusterUnavailableError, ConflictError, InvalidError, NotFoundError, Object
from nebula.kubernetes.transport import ExpiredError, Transport, fitting_page

STRATEGIC: Final = "application/strategic-merge-patch+json"
MERGE: Final = "application/merge-patch+json"
PAGE_SIZE: Final = 500
_MAX_PAGES: Final = 400
#: Calls' time that one list may take in all: without a bound, a cluster's slow pages would cost the others their look.
_LIST_CALLS: Final = 2
_LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_NODE_POOLS: Final = "/apis/nebula.inftyai.com/v1alpha1/nodepools"
_NODES: Final = "/api/v1/nodes"


class KubernetesClient:
    """``KubernetesApi`` over a transport. Safe to share between threads."""

    def __init__(self, name: str, transport: Transport, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._transport = transport
        self._monotonic = monotonic

    @property
    def name(self) -> str:
        """The cluster's name in this installation."""
        return self._name

    def cluster_uid(self) -> str:
        """UID of kube-system, read anew each time: another cluster behind the same address shows."""
        namespace = self._get("/api/v1/namespaces/kube-system", "Namespace")
        uid = (namespace or {}).get("metadata", {}).get("uid")
        if not isinstance(uid, str) or not uid:
            raise ClusterUnavailableError("GET /api/v1/namespaces/kube-system: no uid")
        return uid

    def get_pod(self, namespace: str, name: str) -> Object | None:
        """A Pod, or None."""
        return self._get(_namespaced("pods", namespace, name), "Pod")

    def list_pods(self, label_selector: str = "", field_selector: str = "") -> list[Object]:
        """All matching Pods of all namespaces, every page, strongly consistent."""
        return self._list("/api/v1/pods", label_selector, field_selector)

    def patch_pod(self, namespace: str, name: str, patch: Mapping[str, Any]) -> Object:
        """Strategic merge patch of the main resource."""
        return self._patch(_namespaced("pods", namespace, name), patch, STRATEGIC)

    def patch_pod_status(self, namespace: str, name: str, patch: Mapping[str, Any]) -> Object:
        """Strategic merge patch of ``/status``."""
        return self._patch(_namespaced("pods", namespace, name) + "/status", patch, STRATEGIC)

    def delete_pod(self, namespace: str, name: str, uid: str) -> bool:
        """Delete with grace 0 and a uid precondition; False when that Pod is already gone.

        A 409 is settled by reading: another uid under the name means gone, the same uid raises ConflictError.
        """
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
        try:
            return self._delete(_namespaced("pods", namespace, name), options)
        except ConflictError:
            found = self.get_pod(namespace, name)
            if found is not None and found.get("metadata", {}).get("uid") == uid:
                raise
            return False

    def get_node_pool(self, name: str) -> Object | None:
        """A NodePool, or None."""
        return self._get(f"{_NODE_POOLS}/{_segment(name)}", "NodePool")

    def list_node_pools(self) -> list[Object]:
        """All NodePools."""
        return self._list(_NODE_POOLS)

    def patch_node_pool_status(self, name: str, patch: Mapping[str, Any]) -> Object:
        """Merge patch of a NodePool's status (custom resources answer 415 to a strategic one)."""
        return self._patch(f"{_NODE_POOLS}/{_segment(name)}/status", patch, MERGE)

    def get_secret(self, namespace: str, name: str) -> Object | None:
        """A Secret, or None. ForbiddenError when the namespace granted no access."""
        return self._get(_namespaced("secrets", namespace, name), "Secret")

    def get_config_map(self, namespace: str, name: str) -> Object | None:
        """A ConfigMap, or None."""
        return self._get(_namespaced("configmaps", namespace, name), "ConfigMap")

    def get_node(self, name: str) -> Object | None:
        """A Node, or None."""
        return self._get(f"{_NODES}/{_segment(name)}", "Node")

    def create_node(self, node: Mapping[str, Any]) -> Object:
        """Create a Node with its status."""
        return self._transport.call("POST", _NODES, body=node)

    def patch_node_status(self, name: str, patch: Mapping[str, Any]) -> Object:
        """Strategic merge patch of a Node's status."""
        return self._patch(f"{_NODES}/{_segment(name)}/status", patch, STRATEGIC)

    def delete_node(self, name: str) -> bool:
        """Delete a Node; False when it is already gone."""
        return self._delete(f"{_NODES}/{_segment(name)}", {"kind": "DeleteOptions", "apiVersion": "v1"})

    def get_lease(self, name: str) -> Object | None:
        """A Lease in ``kube-node-lease``, or None."""
        return self._get(f"{_LEASES}/{_segment(name)}", "Lease")

    def create_lease(self, lease: Mapping[str, Any]) -> Object:
        """Create a Lease in ``kube-node-lease``."""
        return self._transport.call("POST", _LEASES, body=lease)

    def patch_lease(self, name: str, patch: Mapping[str, Any]) -> Object:
        """Merge patch of a Lease in ``kube-node-lease``."""
        return self._patch(f"{_LEASES}/{_segment(name)}", patch, MERGE)

    def create_event(self, namespace: str, event: Mapping[str, Any]) -> Object:
        """Create a core/v1 Event."""
        return self._transport.call("POST", _namespaced("events", namespace), body=event)

    def patch_event(self, namespace: str, name: str, patch: Mapping[str, Any]) -> Object:
        """Merge patch of a core/v1 Event."""
        return self._patch(_namespaced("events", namespace, name), patch, MERGE)

    def _get(self, path: str, kind: str) -> Object | None:
        try:
            found = self._transport.call("GET", path)
        except NotFoundError:
            return None
        if found.get("kind") != kind:
            raise ClusterUnavailableError(f"GET {path}: the answer is no {kind}")
        return found

    def _patch(self, path: str, patch: Mapping[str, Any], content_type: str) -> Object:
        return self._transport.call("PATCH", path, body=patch, content_type=content_type)

    def _delete(self, path: str, options: Mapping[str, Any]) -> bool:
        try:
            self._transport.call("DELETE", path, body=options)
        except NotFoundError:
            return False
        return True

    def _list(self, path: str, label_selector: str = "", field_selector: str = "") -> list[Object]:
        query: dict[str, str] = {}
        if label_selector:
            query["labelSelector"] = label_selector
        if field_selector:
            query["fieldSelector"] = field_selector
        ends_at = self._monotonic() + _LIST_CALLS * self._transport.seconds
        try:
            return self._pages(path, query, ends_at)
        except ExpiredError:
            # The continue token outlived the server's history: only a list from the start is consistent.
            return self._pages(path, query, ends_at)

    def _pages(self, path: str, query: Mapping[str, str], ends_at: float) -> list[Object]:
        items: list[Object] = []
        token, limit = "", PAGE_SIZE
        for _ in range(_MAX_PAGES):
            if self._monotonic() >= ends_at:
                raise ClusterUnavailableError(f"GET {path}: not listed in time, {len(items)} objects so far")
            page, limit = self._page(path, {**query, "continue": token} if token else query, limit)
            items.extend(map(_slim, page["items"]))
            token = page.get("metadata", {}).get("continue") or ""
            if not token:
                return items
        raise ClusterUnavailableError(f"GET {path}: more than {_MAX_PAGES} pages")

    def _page(self, path: str, query: Mapping[str, str], limit: int) -> tuple[Object, int]:
        page, fitting = fitting_page(self._transport, path, query, limit)
        items = page.get("items") or []
        if not str(page.get("kind", "")).endswith("List") or not isinstance(items, list):
            raise ClusterUnavailableError(f"GET {path}: the answer is no list")
        return {**page, "items": items}, fitting


def _slim(item: Any) -> Any:
    """A listed object without the record of who wrote which field: most of its size, and nobody reads it here.

    With it, five thousand Pods alone take more memory than the status loop has.
    """
    metadata = item.get("metadata") if isinstance(item, dict) else None
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
    return item


def _segment(name: str) -> str:
    # An empty name would turn a GET of one object into a list; a dot path would leave the collection.
    if not name or name in (".", ".."):
        raise InvalidError("empty object name")
    return quote(name, safe="")


def _namespaced(resource: str, namespace: str, name: str | None = None) -> str:
    collection = f"/api/v1/namespaces/{_segment(namespace)}/{resource}"
    return collection if name is None else f"{collection}/{_segment(name)}"
