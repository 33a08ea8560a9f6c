"""What the local forwarder tells the bus about a cluster."""

from __future__ import annotations

from typing import Any

from nebula.kubernetes.names import GATE

from local.forwarding import Seen, pod_hints, pool_hints


def _pod(version: str = "1", *, gated: bool = True, deleting: bool = False) -> dict[str, Any]:
    metadata = {"name": "p", "namespace": "default", "uid": "u1", "resourceVersion": version}
    if deleting:
        metadata["deletionTimestamp"] = "2026-11-30T08:00:00Z"
    return {"metadata": metadata, "spec": {"schedulingGates": [{"name": GATE}] if gated else []}}


def _pool(version: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "pool", "uid": "n1", "resourceVersion": version}, "spec": spec}


def _kinds(before: dict[str, Any] | None, after: dict[str, Any] | None) -> list[str]:
    def seen(pod: dict[str, Any] | None) -> Seen:
        return {} if pod is None else {"u1": pod}

    return [kind for kind, _ in pod_hints(seen(before), seen(after))]


def test_a_new_pod_behind_our_gate_is_gated() -> None:
    assert _kinds(None, _pod()) == ["Pod Gated"]


def test_a_new_pod_without_our_gate_has_changed() -> None:
    assert _kinds(None, _pod(gated=False)) == ["Pod Changed"]


def test_a_pod_that_did_not_change_is_not_spoken_of() -> None:
    assert _kinds(_pod("1"), _pod("1")) == []
    assert _kinds(_pod("1"), _pod("2")) == ["Pod Changed"]


def test_a_deletion_is_told_when_it_is_asked_for_and_when_it_is_done() -> None:
    assert _kinds(_pod("1"), _pod("2", deleting=True)) == ["Pod Deleted"]
    assert _kinds(_pod("2", deleting=True), None) == ["Pod Deleted"]


def test_a_node_pool_is_told_of_when_its_spec_changes_not_its_status() -> None:
    first, status, spec = _pool("1", {"a": 1}), _pool("2", {"a": 1}), _pool("3", {"a": 2})
    assert [kind for kind, _ in pool_hints({}, {"n1": first})] == ["NodePool Changed"]
    assert list(pool_hints({"n1": first}, {"n1": status})) == []
    assert [kind for kind, _ in pool_hints({"n1": first}, {"n1": spec})] == ["NodePool Changed"]
    assert [kind for kind, _ in pool_hints({"n1": first}, {})] == ["NodePool Changed"]
