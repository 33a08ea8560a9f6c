"""What the Pods of one batch share is read once; nothing else is, and not for long."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from nebula.clock import ManualClock
from nebula.kubernetes.batch_reads import KEEP, BatchClusters
from nebula.kubernetes.node import ensure_node

from local.kubernetes.adapter import client
from local.kubernetes.resources import NODE_POOLS
from local.kubernetes.server import Emulator
from tests.support.world import FixedClusters

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
POOL = {
    "apiVersion": "nebula.inftyai.com/v1alpha1",
    "kind": "NodePool",
    "metadata": {"name": "pool"},
    "spec": {"providers": [{"name": "simulated"}]},
}


class Scene:
    """An emulated cluster behind one batch's reads."""

    def __init__(self) -> None:
        self.emulator = Emulator()
        self.emulator.create(NODE_POOLS, "", POOL)
        self.clock = ManualClock(NOW)
        self.clusters = FixedClusters(client(self.emulator))
        self.api = BatchClusters(self.clusters, self.clock).get("local")

    def count(self, verb: str, resource: str) -> int:
        return self.emulator.calls[verb, resource]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_what_a_batch_shares_is_read_once(scene: Scene) -> None:
    ensure_node(scene.api, "simulated", NOW)
    scene.emulator.calls.clear()
    for _ in range(3):
        assert scene.api.get_node_pool("pool") is not None
        assert scene.api.get_node("nebula-simulated") is not None
        assert scene.api.get_lease("nebula-simulated") is not None
        assert scene.api.cluster_uid()
    assert set(scene.emulator.calls.values()) == {1}


def test_absence_is_remembered_too_and_only_for_its_name(scene: Scene) -> None:
    ensure_node(scene.api, "simulated", NOW)
    scene.emulator.calls.clear()
    assert scene.api.get_node("nebula-other") is None
    assert scene.api.get_node("nebula-other") is None
    assert scene.api.get_node("nebula-simulated") is not None
    assert scene.count("get", "nodes") == 2


def test_that_a_node_pool_is_missing_is_not_remembered(scene: Scene) -> None:
    assert scene.api.get_node_pool("other") is None
    scene.emulator.create(NODE_POOLS, "", {**POOL, "metadata": {"name": "other"}})
    assert scene.api.get_node_pool("other") is not None


def test_a_pod_is_read_each_time(scene: Scene) -> None:
    for _ in range(2):
        assert scene.api.get_pod("default", "train") is None
    assert scene.count("get", "pods") == 2


def test_nothing_is_remembered_for_long(scene: Scene) -> None:
    scene.api.get_node_pool("pool")
    scene.clock.advance(KEEP - timedelta(milliseconds=1))
    scene.api.get_node_pool("pool")
    assert scene.count("get", "nodepools") == 1
    scene.clock.advance(timedelta(milliseconds=1))
    scene.api.get_node_pool("pool")
    assert scene.count("get", "nodepools") == 2


def test_nor_from_a_clock_that_was_set_back(scene: Scene) -> None:
    scene.api.get_node_pool("pool")
    scene.clock.advance(-timedelta(hours=1))
    scene.api.get_node_pool("pool")
    assert scene.count("get", "nodepools") == 2


def test_a_write_of_ours_is_seen_at_once(scene: Scene) -> None:
    assert scene.api.get_node("nebula-simulated") is None
    assert scene.api.get_lease("nebula-simulated") is None
    assert ensure_node(scene.api, "simulated", NOW).ready
    assert scene.api.get_node("nebula-simulated") is not None
    assert scene.api.get_lease("nebula-simulated") is not None
    scene.api.delete_node("nebula-simulated")
    assert scene.api.get_node("nebula-simulated") is None


def test_a_failed_read_is_not_remembered(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    real = scene.clusters.get("local")
    answers: list[Any] = [TimeoutError(), {"kind": "NodePool"}]

    def get_node_pool(_name: str) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(real, "get_node_pool", get_node_pool)
    with pytest.raises(TimeoutError):
        scene.api.get_node_pool("pool")
    assert scene.api.get_node_pool("pool") == {"kind": "NodePool"}


def test_a_cluster_that_was_configured_anew_is_read_anew(scene: Scene) -> None:
    batch = BatchClusters(scene.clusters, scene.clock)
    before = batch.get("local")
    assert batch.get("local") is before
    before.get_node_pool("pool")
    scene.clusters._apis["local"] = client(scene.emulator)
    assert batch.get("local") is not before
    batch.get("local").get_node_pool("pool")
    assert scene.count("get", "nodepools") == 2
