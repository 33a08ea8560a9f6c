"""Fixtures keep their identity, so that the sample events speak of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from nebula.clock import ManualClock

from local.kubernetes.resources import BY_KIND
from local.kubernetes.server import Emulator
from local.restore import fixtures, restore

EVENTS = Path(__file__).resolve().parents[2] / "events"
POD_EVENTS = ("pod-gated", "pod-gated-cpu-only", "pod-gated-private-image", "pod-deleted")


def test_every_fixture_is_served_as_it_is_but_for_its_age() -> None:
    emulator = Emulator(clock=ManualClock(datetime(2027, 3, 1, 12, tzinfo=UTC)))
    restore(emulator, fixtures())
    for fixture in fixtures():
        resource = BY_KIND[fixture["apiVersion"], fixture["kind"]]
        namespace = fixture["metadata"].get("namespace", "") if resource.namespaced else ""
        found = emulator.read(resource, namespace, fixture["metadata"]["name"])
        assert found is not None
        assert found["metadata"] == {**fixture["metadata"], "creationTimestamp": "2027-03-01T12:00:00Z"}
        assert found.get("spec") == fixture.get("spec")


@pytest.mark.parametrize("name", POD_EVENTS)
def test_each_pod_event_speaks_of_a_fixture(name: str) -> None:
    detail = json.loads((EVENTS / f"{name}.json").read_text())["detail"]
    pods = {f["metadata"]["name"]: f["metadata"]["uid"] for f in fixtures() if f["kind"] == "Pod"}
    assert pods[detail["name"]] == detail["uid"]


def test_what_is_written_later_is_newer() -> None:
    emulator = Emulator()
    restore(emulator, fixtures())
    newest = max(int(fixture["metadata"]["resourceVersion"]) for fixture in fixtures())
    assert emulator.store.version >= newest
