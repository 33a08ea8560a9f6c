"""The forwarder as a process: every Pod announced, bounded memory, nothing lost over restarts."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from local.kubernetes.http_server import KubernetesServer
from local.kubernetes.resources import PODS
from local.kubernetes.server import Emulator
from tests.support.event_bus import EventBus
from tests.support.kubernetes_api import pod_object

pytestmark = pytest.mark.network
_ROOT = Path(__file__).parents[2]
_MAX_RESIDENT_KIB = 100 * 1024


class _World:
    def __init__(self, bus: EventBus) -> None:
        self.emulator = Emulator(schedule=False, bookmark_interval=1)
        self.server = KubernetesServer(self.emulator).start()
        self.bus = bus

    @contextmanager
    def forwarder(self) -> Iterator[subprocess.Popen[bytes]]:
        """A forwarder that is killed, not stopped, at the end."""
        path = os.pathsep.join([str(_ROOT), str(_ROOT / "layers/provider/python")])
        command = [sys.executable, "-m", "tests.support.forwarder_process", self.server.url, self.bus.url]
        process = subprocess.Popen(command, cwd=_ROOT, env={**os.environ, "PYTHONPATH": path})
        try:
            yield process
        finally:
            process.kill()
            process.wait(10)

    def create(self, start: int, end: int) -> None:
        for index in range(start, end):
            self.emulator.create(PODS, "default", pod_object(f"p{index}"))

    def told(self, kind: str) -> Counter[str]:
        return Counter(detail["name"] for taken, detail in list(self.bus.taken) if taken == kind)


@pytest.fixture
def world() -> Iterator[_World]:
    made = _World(EventBus())
    yield made
    made.server.stop()
    made.bus.shutdown()
    made.bus.server_close()


def _await(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_500_pods_are_each_announced_once_and_nothing_is_lost_over_a_kill(world: _World) -> None:
    world.bus.refuse = lambda seen: seen % 31 == 0
    with world.forwarder():
        world.create(0, 250)
        _await(lambda: len(world.told("Pod Gated")) == 250)
    first = world.told("Pod Gated")
    assert set(first.values()) == {1}
    assert world.bus.refused > 0
    world.create(250, 500)
    with world.forwarder():
        _await(lambda: len(world.told("Pod Gated")) == 500)
        for index in range(500):
            world.emulator.handle("DELETE", f"/api/v1/namespaces/default/pods/p{index}", {}, {})
        _await(lambda: len(world.told("Pod Deleted")) == 500)
    assert set((world.told("Pod Gated") - first).values()) == {1}
    assert set(world.told("Pod Deleted").values()) == {1}
    assert world.told("Pod Changed") == Counter()


def test_the_api_server_restarts_under_it(world: _World) -> None:
    port = world.server.server_address[1]
    with world.forwarder() as process:
        world.create(0, 20)
        _await(lambda: len(world.told("Pod Gated")) == 20)
        world.server.stop()
        world.create(20, 40)
        world.emulator.handle("DELETE", "/api/v1/namespaces/default/pods/p0", {}, {})
        world.emulator.store.compact()
        world.server = KubernetesServer(world.emulator, port).start()
        _await(lambda: len(world.told("Pod Gated")) == 40 and world.told("Pod Deleted") == Counter(p0=1))
        assert process.poll() is None
    assert set(world.told("Pod Gated").values()) == {1}


def test_5000_pods_fit_in_100_mib(world: _World) -> None:
    world.create(0, 5000)
    with world.forwarder() as process:
        _await(lambda: len(world.told("Pod Gated")) == 5000, seconds=60)
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    fields = dict(line.split(":", 1) for line in status.splitlines())
    assert int(fields["VmHWM"].split()[0]) <= _MAX_RESIDENT_KIB
