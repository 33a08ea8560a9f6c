"""Watches: from a version, through selectors, with bookmarks and 410. The same on both servers."""

from __future__ import annotations

from tests.support.kubernetes_api import GATE, Api, Object


def _version(api: Api) -> str:
    return str(api.must("GET", api.pods)["metadata"]["resourceVersion"])


def _told(events: list[Object]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"]["name"]) for event in events]


def test_changes_after_a_list_are_told_in_order(api: Api) -> None:
    version = _version(api)
    api.pod("watched")
    api.patch(f"{api.pods}/watched", {"metadata": {"labels": {"a": "b"}}})
    api.must("DELETE", f"{api.pods}/watched")
    assert _told(api.watch(api.pods, version, 4)) == [
        ("ADDED", "watched"),
        ("MODIFIED", "watched"),
        ("MODIFIED", "watched"),
        ("DELETED", "watched"),
    ]


def test_deleted_event_has_a_later_version_and_the_last_annotations(api: Api) -> None:
    pod = api.pod("annotated")
    api.patch(f"{api.pods}/annotated", {"metadata": {"annotations": {"a": "b"}}})
    version = _version(api)
    api.must("DELETE", f"{api.pods}/annotated")
    marked, deleted = api.watch(api.pods, version, 2)
    assert (marked["type"], deleted["type"]) == ("MODIFIED", "DELETED")
    last = deleted["object"]["metadata"]
    assert (last["annotations"], last["uid"]) == ({"a": "b"}, pod["metadata"]["uid"])
    assert last["deletionGracePeriodSeconds"] == 0
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in (marked, deleted)]
    assert int(version) < versions[0] < versions[1]


def test_object_that_leaves_or_enters_a_selector_is_deleted_or_added(api: Api) -> None:
    api.pod("mover", labels={"team": "a"})
    version = _version(api)
    api.patch(f"{api.pods}/mover", {"metadata": {"labels": {"team": "b"}}})
    api.patch(f"{api.pods}/mover", {"metadata": {"labels": {"team": "a"}}})
    events = api.watch(api.pods, version, 2, labelSelector="team=a")
    assert _told(events) == [("DELETED", "mover"), ("ADDED", "mover")]
    assert events[0]["object"]["metadata"]["labels"] == {"team": "a"}


def test_watch_without_a_version_begins_with_what_is_there(api: Api) -> None:
    api.pod("present", labels={"suite": "present"})
    assert _told(api.watch(api.pods, "", 1, labelSelector="suite=present")) == [("ADDED", "present")]


def test_status_and_gate_removal_are_changes_too(api: Api) -> None:
    api.pod("moving")
    version = _version(api)
    api.patch(f"{api.pods}/moving", {"spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]}})
    api.patch(f"{api.pods}/moving/status", {"status": {"phase": "Running"}})
    assert _told(api.watch(api.pods, version, 2)) == [("MODIFIED", "moving")] * 2
