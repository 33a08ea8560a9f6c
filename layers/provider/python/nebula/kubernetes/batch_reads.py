"""What all Pods of one batch have in common, read once for the batch: NodePools, virtual Nodes, the cluster itself.

Only while one batch is handled, and for seconds. Every event of the batch was sent before its first read, so no
change that woke us can be missing from what is remembered; a later change brings an event of its own, the sweep looks
for claims that were decided by a NodePool as it was, and provisioning reads all of it again before anything is bought.
Pods are never remembered, nor is that a NodePool is missing: one applied a moment after its Pods is the usual way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast

from nebula.clock import Clock
from nebula.kubernetes.api import Clusters, KubernetesApi, Object

#: A Lease says for 40 s that its Node lives; of that, this much may pass unseen.
KEEP = timedelta(seconds=5)
ReadT = TypeVar("ReadT")


class BatchReads:
    """One cluster's API, with some of its reads remembered; all that is not named here goes straight through."""

    def __init__(self, api: KubernetesApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._known: dict[tuple[str, ...], tuple[datetime, Any]] = {}

    def __getattr__(self, name: str) -> Any:
        """Every other call, as the cluster itself has it."""
        return getattr(self._api, name)

    def cluster_uid(self) -> str:
        """See ``KubernetesApi``."""
        return self._read(("cluster",), self._api.cluster_uid)

    def get_node_pool(self, name: str) -> Object | None:
        """See ``KubernetesApi``."""
        return self._read(("pool", name), lambda: self._api.get_node_pool(name))

    def get_node(self, name: str) -> Object | None:
        """See ``KubernetesApi``."""
        return self._read(("node", name), lambda: self._api.get_node(name))

    def get_lease(self, name: str) -> Object | None:
        """See ``KubernetesApi``."""
        return self._read(("lease", name), lambda: self._api.get_lease(name))

    def create_node(self, node: Mapping[str, Any]) -> Object:
        """See ``KubernetesApi``."""
        return self._written(lambda: self._api.create_node(node))

    def patch_node_status(self, name: str, patch: Mapping[str, Any]) -> Object:
        """See ``KubernetesApi``."""
        return self._written(lambda: self._api.patch_node_status(name, patch))

    def delete_node(self, name: str) -> bool:
        """See ``KubernetesApi``."""
        return self._written(lambda: self._api.delete_node(name))

    def create_lease(self, lease: Mapping[str, Any]) -> Object:
        """See ``KubernetesApi``."""
        return self._written(lambda: self._api.create_lease(lease))

    def patch_lease(self, name: str, patch: Mapping[str, Any]) -> Object:
        """See ``KubernetesApi``."""
        return self._written(lambda: self._api.patch_lease(name, patch))

    def _read(self, key: tuple[str, ...], read: Callable[[], ReadT]) -> ReadT:
        now = self._clock.now()
        known = self._known.get(key)
        if known is not None and now - KEEP < known[0] <= now:
            return cast("ReadT", known[1])
        value = read()
        if value is not None or key[0] != "pool":
            self._known[key] = (now, value)
        return value

    def _written(self, write: Callable[[], ReadT]) -> ReadT:
        """What is remembered of Nodes and Leases does not hold any more, whatever came of the write."""
        try:
            return write()
        finally:
            self._known.clear()


class BatchClusters:
    """``Clusters`` for one batch: each cluster behind one ``BatchReads``. Make one for each batch."""

    def __init__(self, clusters: Clusters, clock: Clock) -> None:
        self._clusters = clusters
        self._clock = clock
        self._seen: dict[str, tuple[KubernetesApi, KubernetesApi]] = {}

    def names(self) -> Sequence[str]:
        """See ``Clusters``."""
        return self._clusters.names()

    def get(self, name: str) -> KubernetesApi:
        """See ``Clusters``."""
        api = self._clusters.get(name)
        seen = self._seen.get(name)
        if seen is None or seen[0] is not api:
            seen = self._seen[name] = (api, cast("KubernetesApi", BatchReads(api, self._clock)))
        return seen[1]
