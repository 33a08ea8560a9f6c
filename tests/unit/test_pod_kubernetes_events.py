"""Events on a Pod: one object per thing said, counted, and never in the way of a decision."""

from __future__ import annotations

from datetime import timedelta

import pytest
from nebula.kubernetes.pod import Pod
from nebula.kubernetes.pod_events import MAX_MESSAGE, event_name, record

from local.kubernetes.server import Response
from tests.support.pods import Cluster, Object, events_of, pod, pod_object


def said(cluster: Cluster) -> list[Object]:
    return events_of(cluster.emulator, "team")


def say(cluster: Cluster, found: Pod, message: str = "no capacity", reason: str = "PlacementDeferred") -> bool:
    now = cluster.clock.now()
    return record(
        cluster.api, found, type_="Normal", reason=reason, message=message, now=now, component="nebula-placement"
    )


def test_the_same_said_again_is_counted_not_repeated() -> None:
    cluster = Cluster()
    found = cluster.add(pod_object())
    for _ in range(3):
        assert say(cluster, found)
        cluster.clock.advance(timedelta(minutes=1))
    (event,) = said(cluster)
    assert event["count"] == 3
    assert (event["firstTimestamp"], event["lastTimestamp"]) == ("2026-11-30T12:00:00Z", "2026-11-30T12:02:00Z")
    assert event["involvedObject"]["uid"] == found.uid
    assert (event["type"], event["source"]["component"]) == ("Normal", "nebula-placement")


def test_another_reason_message_or_pod_is_another_event() -> None:
    cluster = Cluster()
    found = cluster.add(pod_object())
    assert say(cluster, found)
    assert say(cluster, found, message="over budget")
    assert say(cluster, found, reason="ProvisionRejected")
    cluster.api.delete_pod("team", "web-0", found.uid)
    assert say(cluster, cluster.add(pod_object()))
    assert len(said(cluster)) == 4


@pytest.mark.parametrize("status", [403, 404, 422, 500])
def test_an_event_that_cannot_be_written_stops_nothing(status: int) -> None:
    cluster = Cluster()
    found = cluster.add(pod_object())
    cluster.emulator.faults.append(
        lambda method, path: Response(status, {}, b"{}") if path.endswith("/events") else None
    )
    assert say(cluster, found) is False


def test_an_event_that_expired_between_the_two_calls_stops_nothing() -> None:
    cluster = Cluster()
    found = cluster.add(pod_object())
    assert say(cluster, found)
    cluster.emulator.faults.append(lambda method, _path: Response(404, {}, b"{}") if method == "PATCH" else None)
    assert say(cluster, found) is False


def test_a_long_message_is_cut_within_the_limit_and_at_a_character() -> None:
    cluster = Cluster()
    found = cluster.add(pod_object())
    assert say(cluster, found, message="ü" * MAX_MESSAGE)
    (event,) = said(cluster)
    assert len(event["message"].encode()) <= MAX_MESSAGE
    assert event["message"].endswith("ü…")


def test_g10_names_of_long_pods_stay_within_the_limit_and_apart() -> None:
    first, second = pod(), pod()
    long = "a" * 252
    object.__setattr__(first, "name", f"{long}b")
    object.__setattr__(second, "name", f"{long}c")
    object.__setattr__(second, "uid", "uid-2")
    names = {event_name(found, "R", "m") for found in (first, second)}
    assert len(names) == 2
    assert all(len(name) <= 253 for name in names)
