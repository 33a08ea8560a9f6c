"""The list-and-watch loop on the emulator, without sockets."""

from __future__ import annotations

from threading import Event as Flag
from threading import Thread

import pytest
from nebula.clock import SystemClock
from nebula.events.memory import MemoryPublisher
from nebula.kubernetes.api import ClusterUnavailableError
from nebula.kubernetes.transport import ExpiredError, Transport

from cluster.forwarder.books import PodBook
from cluster.forwarder.meters import Meters
from cluster.forwarder.service import PODS, Forwarder
from cluster.forwarder.watcher import Pace, Watcher
from local.in_process import DroppedError
from local.kubernetes.adapter import SERVER, session
from local.kubernetes.resources import PODS as POD_RESOURCE
from local.kubernetes.server import Emulator, Fault, Response
from tests.support.kubernetes_api import pod_object


class _Cluster:
    """An emulator, a watcher on it and what the watcher announced."""

    def __init__(self) -> None:
        self.emulator = Emulator(schedule=False, bookmark_interval=0.01)
        self.transport = Transport(SERVER, None, session(self.emulator), sleep=lambda _: None)
        self.told: list[tuple[str, str]] = []
        self.meters = Meters()
        selector = "nebula.inftyai.com/enabled=true"
        self.watcher = Watcher(
            "pods", self.transport, PODS, selector, PodBook("c"), self._announce, self.meters, pace=Pace(watch=1)
        )

    def _announce(self, events: object) -> None:
        self.told += [(str(event.detail_type), event.detail.name) for event in events]  # type: ignore[attr-defined]

    def create(self, name: str) -> None:
        self.emulator.create(POD_RESOURCE, "default", pod_object(name))

    def delete(self, name: str) -> None:
        answer = self.emulator.handle("DELETE", f"/api/v1/namespaces/default/pods/{name}", {}, {})
        assert answer.status == 200


def _stop_after(cluster: _Cluster, count: int) -> Flag:
    class _Enough(Flag):
        def is_set(self) -> bool:
            return len(cluster.told) >= count

    return _Enough()


def test_list_then_watch_tells_everything_once() -> None:
    cluster = _Cluster()
    cluster.create("a")
    version = cluster.watcher.list_all()
    cluster.create("b")
    cluster.delete("a")
    cluster.watcher.watch(version, _stop_after(cluster, 3))
    assert cluster.told == [("Pod Gated", "a"), ("Pod Gated", "b"), ("Pod Deleted", "a")]


def test_unlabelled_pods_are_not_seen() -> None:
    cluster = _Cluster()
    cluster.emulator.create(POD_RESOURCE, "default", pod_object("other", labels={"a": "b"}))
    cluster.watcher.list_all()
    assert cluster.told == []


def test_bookmarks_move_the_version_on_and_are_no_events() -> None:
    cluster = _Cluster()
    version = cluster.watcher.list_all()
    cluster.emulator.create(POD_RESOURCE, "default", pod_object("other", labels={"a": "b"}))
    stop = Flag()
    stop.set()
    later = cluster.watcher.watch(version, stop)
    assert int(later) > int(version)
    assert cluster.told == []


def test_410_in_the_stream_means_list_again() -> None:
    cluster = _Cluster()
    version = cluster.watcher.list_all()
    cluster.create("a")
    cluster.emulator.store.compact()
    with pytest.raises(ExpiredError):
        cluster.watcher.watch(version, Flag())
    cluster.watcher.list_all()
    assert cluster.told == [("Pod Gated", "a")]


def test_410_as_an_answer_means_list_again_too() -> None:
    cluster = _Cluster()
    body = b'{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}'
    cluster.emulator.faults.append(lambda *_: Response(410, {}, body))
    with pytest.raises(ExpiredError):
        cluster.watcher.watch("1", Flag())


def test_a_deletion_missed_while_away_is_found_by_the_list() -> None:
    cluster = _Cluster()
    cluster.create("a")
    cluster.watcher.list_all()
    cluster.delete("a")
    cluster.watcher.list_all()
    assert cluster.told == [("Pod Gated", "a"), ("Pod Deleted", "a")]


def _away(*_: str) -> Response:
    raise DroppedError


def _throttled(*_: str) -> Response:
    return Response(429, {"Retry-After": "30"}, b'{"kind": "Status", "code": 429, "reason": "TooManyRequests"}')


def _restarting(*_: str) -> Response:
    return Response(503, {}, b"apiserver is shutting down")


@pytest.mark.parametrize("fault", [_away, _throttled, _restarting])
def test_a_server_that_is_away_or_throttles_is_a_failure_and_no_deletion(fault: Fault) -> None:
    cluster = _Cluster()
    cluster.create("a")
    cluster.watcher.list_all()
    cluster.emulator.faults.append(fault)
    with pytest.raises(ClusterUnavailableError):
        cluster.watcher.list_all()
    with pytest.raises(ClusterUnavailableError):
        cluster.watcher.watch("1", Flag())
    assert cluster.told == [("Pod Gated", "a")]
    cluster.emulator.faults.clear()
    cluster.watcher.list_all()
    assert cluster.told == [("Pod Gated", "a")]


def test_a_line_that_is_no_event_ends_the_watch_as_a_failure() -> None:
    cluster = _Cluster()
    cluster.emulator.faults.append(lambda *_: Response(200, {}, b'{"type":"ADDED","obj'))
    with pytest.raises(ClusterUnavailableError):
        cluster.watcher.watch("1", Flag())


def test_pages_of_a_large_cluster_are_all_read() -> None:
    cluster = _Cluster()
    for index in range(1001):
        cluster.create(f"p{index}")
    cluster.watcher.list_all()
    assert len(cluster.told) == 1001
    assert cluster.emulator.calls["list", "pods"] == 3


def test_the_forwarder_uses_list_and_watch_of_two_kinds_and_nothing_else() -> None:
    cluster = _Cluster()
    cluster.create("a")
    publisher = MemoryPublisher(SystemClock())
    forwarder = Forwarder("c", cluster.transport, publisher, pace=Pace(watch=1), linger=0)
    thread = Thread(target=forwarder.run)
    thread.start()
    while forwarder.meters.value("lists") < 2 or not publisher.events:
        assert thread.is_alive()
        thread.join(0.02)
    forwarder.stop.set()
    thread.join(15)
    assert not thread.is_alive()
    assert set(cluster.emulator.calls) <= {(v, k) for v in ("list", "watch") for k in ("pods", "nodepools")}
