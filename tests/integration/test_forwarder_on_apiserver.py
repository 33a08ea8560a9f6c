"""The forwarder on a real API server, with its own ServiceAccount's token and no right but its manifest's."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from nebula.clock import SystemClock
from nebula.events.memory import MemoryPublisher
from nebula.kubernetes.api import ForbiddenError

from cluster.forwarder.service import Forwarder
from cluster.forwarder.watcher import Pace
from tests.support.kubernetes_api import Api, pod_object
from tests.support.kubernetes_apply import CLUSTER_FOLDER, apply, await_true
from tests.support.kubernetes_targets import NO_ASSETS
from tests.support.kustomize import manifests

pytestmark = [pytest.mark.apiserver, pytest.mark.network]
ASSETS = os.environ.get("KUBEBUILDER_ASSETS")
PODS = "/api/v1/namespaces/default/pods"
ACCOUNT = "/api/v1/namespaces/nebula-system/serviceaccounts/nebula-forwarder"
COUNT = 500


class Installed:
    """A server with the forwarder's manifests, and what its bus was told."""

    def __init__(self, server: Any) -> None:
        self.server = server
        self.api = Api(server.session(), server.url, server.client())
        apply(self.api, [*manifests(CLUSTER_FOLDER / "namespace"), *manifests(CLUSTER_FOLDER / "forwarder")])
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        self.token = self.api.must("POST", f"{ACCOUNT}/token", asked)["status"]["token"]
        self.publisher = MemoryPublisher(SystemClock())
        self._told: Counter[tuple[str, str]] = Counter()

    def told(self, kind: str) -> Counter[str]:
        """How often each Pod was announced so."""
        for envelope in self.publisher.take():
            self._told[envelope["detail-type"], envelope["detail"]["name"]] += 1
        return Counter({name: count for (told, name), count in self._told.items() if told == kind})

    def for_each(self, method: str, start: int, end: int) -> None:
        """Create or delete Pods ``p<start>`` to ``p<end>``, four at a time."""

        def one(index: int) -> None:
            body = pod_object(f"p{index}") if method == "POST" else None
            self.api.must(method, PODS if method == "POST" else f"{PODS}/p{index}", body)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(one, range(start, end)))

    @contextmanager
    def forwarder(self) -> Iterator[Forwarder]:
        """A forwarder in a thread, until the block ends."""
        made = Forwarder("real", self.server.transport(self.token), self.publisher, pace=Pace(watch=2))
        thread = Thread(target=made.run, daemon=True)
        thread.start()
        try:
            yield made
        finally:
            made.stop.set()
            thread.join(20)


@pytest.fixture(scope="module")
def installed() -> Iterator[Installed]:
    if not ASSETS:
        pytest.skip(NO_ASSETS)
    from tests.support.kubernetes_apiserver import started

    with started(Path(ASSETS)) as server:
        yield Installed(server)


def test_500_pods_are_each_announced_and_nothing_is_lost_over_a_restart(installed: Installed) -> None:
    half = COUNT // 2
    with installed.forwarder():
        installed.for_each("POST", 0, half)
        await_true(lambda: len(installed.told("Pod Gated")) == half, "not every Pod was announced")
    first = installed.told("Pod Gated")
    assert set(first.values()) == {1}
    installed.for_each("POST", half, COUNT)
    with installed.forwarder():
        await_true(lambda: len(installed.told("Pod Gated")) == COUNT, "not every Pod was announced")
        installed.for_each("DELETE", 0, COUNT)
        await_true(lambda: len(installed.told("Pod Deleted")) == COUNT, "not every end was announced")
    # A new forwarder says once more what still waits.
    again = installed.told("Pod Gated") - first
    assert set(again.values()) == {1}
    assert len(again) == COUNT
    # A real server tells a gated Pod's deletion twice, begun and done, which the sender may put together.
    assert set(installed.told("Pod Deleted").values()) <= {1, 2}
    assert installed.told("Pod Changed") == Counter()


def test_its_identity_may_do_nothing_else(installed: Installed) -> None:
    client = installed.server.client(installed.token)
    calls: list[Callable[[], object]] = [
        lambda: client.get_secret("default", "any"),
        lambda: client.get_pod("default", "any"),
        lambda: client.patch_pod("default", "any", {"metadata": {"labels": {"a": "b"}}}),
        lambda: client.delete_pod("default", "any", "uid"),
    ]
    for call in calls:
        with pytest.raises(ForbiddenError):
            call()
