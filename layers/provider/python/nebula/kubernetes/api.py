"""The Kubernetes calls that the control plane makes, as a Protocol over plain objects.

Objects are decoded JSON (``dict``), never models: a newer server's unknown fields survive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

Object = dict[str, Any]


class KubernetesError(Exception):
    """Base of what a call raises; the message never holds a body of a Secret or a Pod."""


class ConflictError(KubernetesError):
    """409: the object moved, or already exists: re-read."""


class NotFoundError(KubernetesError):
    """404 on a write: the object is gone."""


class InvalidError(KubernetesError):
    """400 or 422: the server refuses what we wrote (a wrong uid in a patch answers 422)."""


class ForbiddenError(KubernetesError):
    """401 (after one new token) or 403: our identity may not do this."""


class ClusterUnavailableError(KubernetesError):
    """Transport failure, time-out, 429 or 5xx after a small number of tries: the cluster is *unknown*."""


class KubernetesApi(Protocol):
    """One cluster. ``get_*`` and ``find``-like reads return None on 404; writes raise."""

    @property
    def name(self) -> str:
        """The cluster's name in this installation."""
        ...

    def cluster_uid(self) -> str:
        """UID of the kube-system namespace: the cluster's identity."""
        ...

    def get_pod(self, namespace: str, name: str) -> Object | None:
        """A Pod, or None."""
        ...

    def list_pods(self, label_selector: str = "", field_selector: str = "") -> list[Object]:
        """All matching Pods of all namespaces, every page, strongly consistent."""
        ...

    def patch_pod(self, namespace: str, name: str, patch: Mapping[str, Any]) -> Object:
        """Strategic merge patch of the main resource."""
        ...

    def patch_pod_status(self, namespace: str, name: str, patch: Mapping[str, Any]) -> Object:
        """Strategic merge patch of ``/status``."""
        ...

    def delete_pod(self, namespace: str, name: str, uid: str) -> bool:
        """Delete with grace 0 and a uid precondition; False when that Pod is already gone."""
        ...

    def get_node_pool(self, name: str) -> Object | None:
        """A NodePool, or None."""
        ...

    def list_node_pools(self) -> list[Object]:
        """All NodePools."""
        ...

    def patch_node_pool_status(self, name: str, patch: Mapping[str, Any]) -> Object:
        """Merge patch of a NodePool's status."""
        ...

    def get_secret(self, namespace: str, name: str) -> Object | None:
        """A Secret, or None. ForbiddenError when the namespace granted no access."""
        ...

    def get_config_map(self, namespace: str, name: str) -> Object | None:
        """A ConfigMap, or None."""
        ...

    def get_node(self, name: str) -> Object | None:
        """A Node, or None."""
        ...

    def create_node(self, node: Mapping[str, Any]) -> Object:
        """Create a Node with its status (accepted in the POST, ``kubernetes.md`` §1.1)."""
        ...

    def patch_node_status(self, name: str, patch: Mapping[str, Any]) -> Object:
        """Strategic merge patch of a Node's status."""
        ...

    def delete_node(self, name: str) -> bool:
        """Delete a Node; False when it is already gone."""
        ...

    def get_lease(self, name: str) -> Object | None:
        """A Lease in ``kube-node-lease``, or None."""
        ...

    def create_lease(self, lease: Mapping[str, Any]) -> Object:
        """Create a Lease in ``kube-node-lease``."""
        ...

    def patch_lease(self, name: str, patch: Mapping[str, Any]) -> Object:
        """Merge patch of a Lease in ``kube-node-lease``."""
        ...

    def create_event(self, namespace: str, event: Mapping[str, Any]) -> Object:
        """Create a core/v1 Event."""
        ...

    def patch_event(self, namespace: str, name: str, patch: Mapping[str, Any]) -> Object:
        """Merge patch of a core/v1 Event (its count and last timestamp)."""
        ...


class Clusters(Protocol):
    """The clusters of this installation by name (Parameter Store)."""

    def names(self) -> Sequence[str]:
        """Configured cluster names, sorted."""
        ...

    def get(self, name: str) -> KubernetesApi:
        """The client of a cluster, one per warm process; KeyError for an unknown name."""
        ...
