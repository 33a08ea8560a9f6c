"""The virtual Node: created whole, beaten, repaired after a lapse, recreated, removed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from nebula.kubernetes.api import Object
from nebula.kubernetes.node import ENSURE_MIN_AGE, beat, ensure_node, node_name, node_object, remove_node
from nebula.kubernetes.quantity import parse_quantity

from tests.support.pods import NOW, Cluster

TICK = timedelta(seconds=15)
YOUNG = timedelta(seconds=10)
NAME = "nebula-runpod"


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def ensure(cluster: Cluster) -> Object:
    state = ensure_node(cluster.api, "runpod", cluster.clock.now())
    assert state.ready
    assert state.object is not None
    return state.object


def tick(cluster: Cluster, by: timedelta = TICK) -> bool:
    cluster.clock.advance(by)
    return beat(cluster.api, "runpod", cluster.clock.now(), min_age=YOUNG)


def node(cluster: Cluster) -> Object:
    found = cluster.api.get_node(NAME)
    assert found is not None
    return found


def lease(cluster: Cluster) -> Object:
    found = cluster.api.get_lease(NAME)
    assert found is not None
    return found


def conditions(cluster: Cluster) -> dict[str, str]:
    return {c["type"]: c["status"] for c in node(cluster)["status"]["conditions"]}


def writes(cluster: Cluster) -> int:
    return sum(count for (verb, _), count in cluster.emulator.calls.items() if verb in ("create", "patch", "delete"))


def lapse(cluster: Cluster) -> None:
    """What the node lifecycle controller writes after the grace period, and all that it ever writes."""
    unknown = [
        {"type": type_, "status": "Unknown", "reason": "NodeStatusUnknown"}
        for type_ in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
    ]
    cluster.api.patch_node_status(NAME, {"status": {"conditions": unknown}})


def test_a_node_is_created_ready_with_its_lease(cluster: Cluster) -> None:
    created = ensure(cluster)
    assert created["metadata"]["labels"]["nebula.inftyai.com/provider"] == "runpod"
    assert created["metadata"]["labels"]["kubernetes.io/hostname"] == NAME
    assert {"key": "nebula.inftyai.com/provider", "value": "runpod", "effect": "NoSchedule"} in created["spec"][
        "taints"
    ]
    assert conditions(cluster)["Ready"] == "True"
    assert set(conditions(cluster)) == {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"}
    spec = lease(cluster)["spec"]
    assert spec == {"holderIdentity": NAME, "leaseDurationSeconds": 40, "renewTime": "2026-11-30T12:00:00.000000Z"}


def test_a_node_has_nothing_that_a_cloud_controller_or_a_daemon_set_takes_for_its_own() -> None:
    made = node_object("runpod", NOW)
    labels = made["metadata"]["labels"]
    assert "providerID" not in made["spec"]
    assert "addresses" not in made["status"]
    assert not {"kubernetes.io/os", "kubernetes.io/arch"} & set(labels)
    assert labels["node.kubernetes.io/exclude-from-external-load-balancers"] == "true"
    assert "node.kubernetes.io/exclude-disruption" in labels
    assert len(made["status"]["nodeInfo"]) == 10


@pytest.mark.parametrize(
    ("resource", "each"),
    [("cpu", "64"), ("memory", "256Gi"), ("nvidia.com/gpu", "8"), ("pods", "1"), ("ephemeral-storage", "100Gi")],
)
def test_c12_a_thousand_large_pods_fit(resource: str, each: str) -> None:
    status = node_object("runpod", NOW)["status"]
    assert status["capacity"] == status["allocatable"]
    assert parse_quantity(status["allocatable"][resource]) >= 1000 * parse_quantity(each)


def test_placing_many_pods_writes_nothing_while_ticks_come(cluster: Cluster) -> None:
    ensure(cluster)
    before = writes(cluster)
    for _ in range(20):
        ensure(cluster)
    assert writes(cluster) == before
    cluster.clock.advance(ENSURE_MIN_AGE)
    ensure(cluster)
    assert writes(cluster) == before + 1


def test_a_beat_renews_the_lease_and_a_young_one_is_left(cluster: Cluster) -> None:
    ensure(cluster)
    assert tick(cluster) is True
    assert lease(cluster)["spec"]["renewTime"] == "2026-11-30T12:00:15.000000Z"
    assert tick(cluster, timedelta(seconds=5)) is False
    assert lease(cluster)["spec"]["renewTime"] == "2026-11-30T12:00:15.000000Z"


def test_a_steady_minute_costs_four_lease_writes_and_one_status(cluster: Cluster) -> None:
    ensure(cluster)
    before = writes(cluster)
    assert all(tick(cluster) for _ in range(4))
    assert writes(cluster) == before + 5
    heartbeats = {c["lastHeartbeatTime"] for c in node(cluster)["status"]["conditions"]}
    since = {c["lastTransitionTime"] for c in node(cluster)["status"]["conditions"]}
    assert (heartbeats, since) == ({"2026-11-30T12:01:00Z"}, {"2026-11-30T12:00:00Z"})


@pytest.mark.parametrize("ahead", [timedelta(hours=1), timedelta(seconds=30), timedelta(microseconds=1)])
def test_a_lease_renewed_by_a_faster_clock_still_moves_forward(cluster: Cluster, ahead: timedelta) -> None:
    ensure(cluster)
    future = NOW + ahead
    cluster.api.patch_lease(NAME, {"spec": {"renewTime": future.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}})
    lapse(cluster)
    assert beat(cluster.api, "runpod", NOW, min_age=YOUNG) is True
    text = lease(cluster)["spec"]["renewTime"]
    assert datetime.fromisoformat(text).astimezone(UTC) == future + timedelta(microseconds=1)
    assert len(text.split(".")[1]) == len("000000Z")


def test_a_beat_from_the_future_does_not_keep_the_next_ones_away(cluster: Cluster) -> None:
    ensure(cluster)
    cluster.api.patch_lease(NAME, {"spec": {"renewTime": "2099-01-01T00:00:00.000000Z"}})
    seen = [lease(cluster)["spec"]["renewTime"]]
    for _ in range(3):
        assert tick(cluster) is True
        seen.append(lease(cluster)["spec"]["renewTime"])
    assert seen == sorted(set(seen))
    assert len(seen) == 4


def test_a_lapsed_node_is_ready_again_after_the_next_beat_however_young_its_lease(cluster: Cluster) -> None:
    ensure(cluster)
    lapse(cluster)
    assert tick(cluster, timedelta(seconds=1)) is True
    assert conditions(cluster) == {
        **conditions(cluster),
        "Ready": "True",
        "MemoryPressure": "False",
        "PIDPressure": "False",
    }
    ready = next(c for c in node(cluster)["status"]["conditions"] if c["type"] == "Ready")
    assert ready["lastTransitionTime"] == "2026-11-30T12:00:01Z"


def test_a_node_that_somebody_deleted_is_recreated_with_a_lease_of_its_own(cluster: Cluster) -> None:
    first = ensure(cluster)["metadata"]["uid"]
    assert cluster.api.delete_node(NAME)
    assert tick(cluster, timedelta(seconds=1)) is True
    second = node(cluster)["metadata"]["uid"]
    assert second != first
    assert [owner["uid"] for owner in lease(cluster)["metadata"]["ownerReferences"]] == [second]


def test_a_lease_of_an_earlier_node_is_taken_over_at_once(cluster: Cluster) -> None:
    ensure(cluster)
    cluster.api.patch_lease(
        NAME, {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": NAME, "uid": "old"}]}}
    )
    assert tick(cluster, timedelta(seconds=1)) is True
    assert lease(cluster)["metadata"]["ownerReferences"][0]["uid"] == node(cluster)["metadata"]["uid"]


def test_an_older_release_s_node_learns_the_resources_of_this_one(cluster: Cluster) -> None:
    made: dict[str, Any] = node_object("runpod", NOW)
    del made["status"]["allocatable"]["nvidia.com/gpu"]
    cluster.api.create_node(made)
    assert "nvidia.com/gpu" in ensure(cluster)["status"]["allocatable"]


def test_a_node_of_the_name_that_is_not_ours_is_a_problem_and_is_not_taken(cluster: Cluster) -> None:
    foreign = node_object("runpod", NOW)
    foreign["metadata"]["labels"] = {}
    cluster.api.create_node(foreign)
    state = ensure_node(cluster.api, "runpod", NOW)
    assert not state.ready
    assert "nebula.inftyai.com/provider" in state.problem


def test_two_at_once_create_one_node(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    first = ensure(cluster)["metadata"]["uid"]
    seen = iter([None, node(cluster)])
    monkeypatch.setattr(cluster.api, "get_node", lambda _name: next(seen))
    assert ensure(cluster)["metadata"]["uid"] == first
    assert cluster.emulator.calls["create", "nodes"] == 2


def test_removal_is_idempotent(cluster: Cluster) -> None:
    ensure(cluster)
    remove_node(cluster.api, "runpod")
    remove_node(cluster.api, "runpod")
    assert cluster.api.get_node(node_name("runpod")) is None
