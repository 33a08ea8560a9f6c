"""Lists whose objects are large: fewer at once, never a cluster that cannot be read."""

from __future__ import annotations

import pytest
from nebula.events.envelope import Event
from nebula.http import Limits
from nebula.kubernetes.client import KubernetesClient
from nebula.kubernetes.transport import TooLargeError, Transport

from cluster.forwarder.books import PodBook
from cluster.forwarder.meters import Meters
from cluster.forwarder.service import PODS
from cluster.forwarder.watcher import Watcher
from local.kubernetes.adapter import SERVER, session
from local.kubernetes.resources import PODS as POD_RESOURCE
from local.kubernetes.server import Emulator
from tests.support.kubernetes_api import pod_object

COUNT = 12
LARGE = "x" * 20_000


def _transport(max_bytes: int) -> Transport:
    """A cluster of large Pods, of which ``max_bytes`` is the longest answer that is taken."""
    emulator = Emulator(schedule=False)
    for number in range(COUNT):
        pod = pod_object(f"p{number}")
        pod["metadata"]["annotations"] = {"large": LARGE}
        emulator.create(POD_RESOURCE, "default", pod)
    return Transport(SERVER, None, session(emulator), limits=Limits(max_bytes=max_bytes), sleep=lambda _: None)


def test_a_page_that_does_not_fit_is_asked_for_in_smaller_ones() -> None:
    found = KubernetesClient("c", _transport(3 * len(LARGE))).list_pods()
    assert len({pod["metadata"]["name"] for pod in found}) == COUNT == len(found)


def test_an_object_that_does_not_fit_alone_is_unknown_and_no_absence() -> None:
    with pytest.raises(TooLargeError):
        KubernetesClient("c", _transport(len(LARGE))).list_pods()


def test_the_forwarder_tells_of_large_pods_too() -> None:
    told: list[Event] = []
    watcher = Watcher("pods", _transport(3 * len(LARGE)), PODS, "", PodBook("c"), told.extend, Meters())
    assert watcher.list_all()
    assert len(told) == COUNT
