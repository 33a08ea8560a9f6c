from __future__ import annotations

from typing import Any

from nebula.kubernetes import names

from cluster.forwarder.books import NodePoolBook, PodBook

FOREIGN = "example.com/quota"


def _pod(version: str = "1", *, gates: tuple[str, ...] = (names.GATE,), **metadata: Any) -> dict[str, Any]:
    base: dict[str, Any] = {"name": "p", "namespace": "default", "uid": "u1", "resourceVersion": version}
    base["labels"] = {names.LABEL_ENABLED: "true"}
    spec = {"schedulingGates": [{"name": gate} for gate in gates], "containers": [{"name": "c", "image": "i"}]}
    return {"metadata": {**base, **metadata}, "spec": spec, "status": {"phase": "Pending"}}


def _told(book: PodBook, *pods: dict[str, Any]) -> list[str]:
    return [str(event.detail_type) for pod in pods for event in book.see(pod)]


def test_a_pod_that_waits_only_for_us_is_announced_once() -> None:
    assert _told(PodBook("c"), _pod("1"), _pod("2")) == ["Pod Gated"]


def test_a_pod_behind_a_foreign_gate_is_announced_when_that_gate_goes() -> None:
    held = _pod("1", gates=(FOREIGN, names.GATE))
    assert _told(PodBook("c"), held, _pod("2")) == ["Pod Gated"]


def test_status_conditions_and_foreign_annotations_are_no_news() -> None:
    changed = _pod("2", annotations={"kubectl.kubernetes.io/x": "y"})
    changed["status"] = {"phase": "Pending", "conditions": [{"type": names.CONDITION_RELEASED, "status": "False"}]}
    assert _told(PodBook("c"), _pod("1"), changed) == ["Pod Gated"]


def test_a_change_of_what_is_used_is_told() -> None:
    image, pool = _pod("2"), _pod("3", labels={names.LABEL_ENABLED: "true", names.LABEL_NODE_POOL: "other"})
    image["spec"]["containers"][0]["image"] = "other"
    pool["spec"] = image["spec"]
    assert _told(PodBook("c"), _pod("1"), image, pool) == ["Pod Gated", "Pod Changed", "Pod Changed"]


def test_our_own_release_and_the_binding_are_no_news() -> None:
    released = _pod("2", gates=(), annotations={names.ANNOTATION_CLAIM: "c1"})
    released["spec"] |= {"nodeSelector": {names.LABEL_PROVIDER: "runpod"}, "tolerations": [{"operator": "Exists"}]}
    bound = _pod("3", gates=(), annotations={names.ANNOTATION_CLAIM: "c1"})
    bound["spec"] = {**released["spec"], "nodeName": "nebula-runpod"}
    assert _told(PodBook("c"), _pod("1"), released, bound) == ["Pod Gated"]


def test_a_deletion_is_told_when_asked_for_and_when_done() -> None:
    book = PodBook("c")
    leaving = _pod("2", deletionTimestamp="2026-11-30T08:00:00Z")
    assert _told(book, _pod("1"), leaving, {**leaving}) == ["Pod Gated", "Pod Deleted"]
    assert [str(event.detail_type) for event in book.gone(leaving)] == ["Pod Deleted"]
    assert len(book) == 0


def test_a_restart_repeats_what_waits_and_what_leaves_but_not_what_runs() -> None:
    leaving = _pod(uid="u2", deletionTimestamp="2026-11-30T08:00:00Z", gates=())
    running = _pod(uid="u3", gates=())
    assert _told(PodBook("c"), _pod(), leaving, running) == ["Pod Gated", "Pod Deleted"]


def test_a_deletion_that_no_watch_told_is_found_by_the_next_list() -> None:
    book = PodBook("c")
    book.see(_pod())
    book.see(_pod(uid="u2", name="q"))
    assert [(str(e.detail_type), e.detail.name) for e in book.keep_only({"u1"})] == [("Pod Deleted", "q")]  # type: ignore[attr-defined]
    assert book.keep_only({"u1"}) == []


def test_y10_a_recreated_name_is_another_pod() -> None:
    book = PodBook("c")
    assert _told(book, _pod(), _pod(uid="u2")) == ["Pod Gated", "Pod Gated"]


def test_a_pod_that_cannot_be_read_is_announced_so_that_somebody_says_why() -> None:
    broken = _pod()
    broken["spec"]["containers"] = "none"
    assert _told(PodBook("c"), broken, broken) == ["Pod Gated"]


def test_events_hold_names_and_versions_and_nothing_of_the_spec() -> None:
    pod = _pod("7")
    pod["spec"]["containers"][0]["env"] = [{"name": "A", "value": "hunter2"}]
    detail = PodBook("c").see(pod)[0].detail.model_dump()
    assert detail == {
        "schema_version": 1,
        "cluster": "c",
        "namespace": "default",
        "name": "p",
        "uid": "u1",
        "resource_version": "7",
    }


def test_a_node_pool_is_told_when_new_changed_or_gone_and_not_on_status() -> None:
    def pool(generation: int) -> dict[str, Any]:
        return {"metadata": {"name": "pool", "uid": "n1", "generation": generation}}

    book = NodePoolBook("c")
    told = [len(book.see(pool(generation))) for generation in (1, 1, 2)]
    assert told == [1, 0, 1]
    assert [event.detail.name for event in book.gone(pool(2))] == ["pool"]  # type: ignore[attr-defined]
    book.see(pool(1))
    assert len(book.keep_only(())) == 1
