"""Letting a Pod go: one guarded patch that a real API server accepts, against the emulator's rules."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from nebula.kubernetes.api import ConflictError, InvalidError
from nebula.kubernetes.pod import Pod
from nebula.kubernetes.release import moved_patch, release_patch, released_tolerations

from tests.support.pods import GATE, Cluster, Object, pod, pod_object

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
PROVIDER = "nebula.inftyai.com/provider"
ANNOTATIONS = {"nebula.inftyai.com/claim": "c1", "nebula.inftyai.com/instance-id": "i1"}


def limited(key: str, seconds: int | None = 300) -> Object:
    entry: Object = {"key": key, "operator": "Exists", "effect": "NoExecute"}
    return entry if seconds is None else {**entry, "tolerationSeconds": seconds}


def released(found: Pod) -> dict[str, Any]:
    return release_patch(found, provider="runpod", annotations=ANNOTATIONS)


def test_one_patch_annotates_selects_tolerates_and_removes_only_our_gate() -> None:
    cluster = Cluster()
    found = cluster.add(pod_object(nodeSelector={"user": "own"}))
    cluster.api.patch_pod("team", "web-0", released(found))
    after = cluster.read()
    assert not after.gated
    assert after.spec["nodeSelector"] == {"user": "own", PROVIDER: "runpod"}
    assert {key: after.annotations[key] for key in ANNOTATIONS} == ANNOTATIONS
    assert {(t["key"], t["effect"]): t.get("tolerationSeconds") for t in after.spec["tolerations"]} == {
        (NOT_READY, "NoExecute"): None,
        (UNREACHABLE, "NoExecute"): None,
        (PROVIDER, "NoSchedule"): None,
        (NOT_READY, "NoSchedule"): None,
        (UNREACHABLE, "NoSchedule"): None,
        ("node.kubernetes.io/network-unavailable", "NoSchedule"): None,
    }


def test_a_foreign_gate_survives_the_patch() -> None:
    cluster = Cluster()
    found = cluster.add(pod_object(schedulingGates=[{"name": "other.example.com/hold"}, {"name": GATE}]))
    cluster.api.patch_pod("team", "web-0", released(found))
    assert cluster.read().gates == ("other.example.com/hold",)


def test_y9_a_pod_that_moved_since_it_was_read_is_a_conflict() -> None:
    cluster = Cluster()
    found = cluster.add(pod_object())
    cluster.api.patch_pod("team", "web-0", {"metadata": {"labels": {"touched": "yes"}}})
    with pytest.raises(ConflictError):
        cluster.api.patch_pod("team", "web-0", released(found))
    assert cluster.read().gated


def test_a_pod_made_again_under_the_name_is_not_released() -> None:
    cluster = Cluster()
    found = cluster.add(pod_object())
    cluster.api.delete_pod("team", "web-0", found.uid)
    again = cluster.add(pod_object())
    stale = copy.deepcopy(found.object)
    stale["metadata"]["resourceVersion"] = again.resource_version
    with pytest.raises((ConflictError, InvalidError)):
        cluster.api.patch_pod("team", "web-0", released(Pod.from_object(stale)))
    assert cluster.read().gated


def test_after_the_defusing_write_a_late_release_meets_a_conflict() -> None:
    cluster = Cluster()
    found = cluster.add(pod_object())
    cluster.api.patch_pod("team", "web-0", moved_patch(found))
    moved = cluster.read()
    assert moved.resource_version != found.resource_version
    assert moved.fields_hash() == found.fields_hash()
    with pytest.raises(ConflictError):
        cluster.api.patch_pod("team", "web-0", released(found))


def test_two_defusing_writes_both_move_the_version() -> None:
    cluster = Cluster()
    first = cluster.add(pod_object())
    cluster.api.patch_pod("team", "web-0", moved_patch(first))
    second = cluster.read()
    cluster.api.patch_pod("team", "web-0", moved_patch(second))
    assert cluster.read().resource_version not in (first.resource_version, second.resource_version)


def test_every_old_toleration_comes_back_in_its_place() -> None:
    own: list[Object] = [
        {"key": "dedicated", "operator": "Equal", "value": "ml", "effect": "NoSchedule"},
        limited(UNREACHABLE),
        {"key": "other", "operator": "Exists"},
        limited(NOT_READY),
    ]
    edited = released_tolerations(pod(tolerations=own))
    assert [t["key"] for t in edited[:4]] == ["dedicated", UNREACHABLE, "other", NOT_READY]
    assert edited[0] == own[0]
    assert edited[1] == limited(UNREACHABLE, None)
    assert len(edited) == 8


@pytest.mark.parametrize("seconds", [0, 60, 301])
def test_a_time_limit_of_the_user_s_own_is_kept(seconds: int) -> None:
    edited = released_tolerations(pod(tolerations=[limited(NOT_READY, seconds)]))
    assert edited[0]["tolerationSeconds"] == seconds
    assert sum(t["key"] == NOT_READY and t["effect"] == "NoExecute" for t in edited) == 1


def test_nothing_is_added_twice() -> None:
    once = released_tolerations(pod())
    assert released_tolerations(pod(tolerations=once)) == once


def test_the_injected_limit_of_another_taint_is_left_alone() -> None:
    (first, *_) = released_tolerations(pod(tolerations=[limited("example.com/maintenance")]))
    assert first["tolerationSeconds"] == 300
