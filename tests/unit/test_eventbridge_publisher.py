"""Events reach the bus in batches it takes; what fails is sent again, alone and not for ever."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.stub import ANY
from nebula.events.details import ClaimDetail, DetailType, NodePoolDetail
from nebula.events.entries import bus_size
from nebula.events.envelope import Event
from nebula.events.eventbridge import MAX_BYTES, MAX_TRIES, EventBridgePublisher, batches
from nebula.events.publisher import PublishError

from tests.support.aws_stubs import stubbed

SENT = {"EventId": "e"}
BROKEN = {"ErrorCode": "InternalFailure", "ErrorMessage": "try again"}


def event(name: str = "gpus") -> Event:
    detail = NodePoolDetail.model_construct(schema_version=1, cluster="prod", name=name)
    return Event(source="nebula.placement", detail_type=DetailType.NODEPOOL_CHANGED, detail=detail)


def publisher(client: Any, pauses: list[float] | None = None) -> EventBridgePublisher:
    slept: list[float] = [] if pauses is None else pauses
    return EventBridgePublisher(client, "bus", sleep=slept.append, chance=lambda: 1.0)


def names(entries: list[dict[str, str]]) -> list[str]:
    return [entry["Detail"].split('"name":"')[1].split('"')[0] for entry in entries]


def test_an_entry_is_exactly_what_the_bus_gets() -> None:
    client, script = stubbed("events")
    detail = ClaimDetail(cluster="prod", claim_id="0" * 32, phase="Placed", version=3, provider="runpod")
    entry = {
        "EventBusName": "bus",
        "Source": "nebula.placement",
        "DetailType": "Claim Placed",
        "Detail": '{"schema_version":1,"cluster":"prod","claim_id":"' + "0" * 32 + '","phase":"Placed","version":3,'
        '"provider":"runpod","reason":""}',
    }
    script.add_response("put_events", {"FailedEntryCount": 0, "Entries": [SENT]}, {"Entries": [entry]})
    publisher(client).publish([Event(source="nebula.placement", detail_type=DetailType.CLAIM_PLACED, detail=detail)])
    script.assert_no_pending_responses()


def test_nothing_to_publish_is_no_call() -> None:
    client, script = stubbed("events")
    publisher(client).publish([])
    script.assert_no_pending_responses()


def test_ten_to_a_call() -> None:
    client, script = stubbed("events")
    for size in (10, 10, 3):
        script.add_response("put_events", {"FailedEntryCount": 0, "Entries": [SENT] * size}, {"Entries": [ANY] * size})
    publisher(client).publish([event(f"pool-{n}") for n in range(23)])
    script.assert_no_pending_responses()


def test_batches_keep_under_the_bytes_of_one_call_and_in_order() -> None:
    large = [event(f"{n}" + "x" * 100_000) for n in range(7)]
    cut = list(batches(large))
    assert [len(batch) for batch in cut] == [2, 2, 2, 1]
    assert all(sum(map(bus_size, batch)) <= MAX_BYTES for batch in cut)
    assert [one for batch in cut for one in batch] == large


def test_size_counts_bytes_and_not_characters() -> None:
    assert bus_size(event("é" * 10)) == bus_size(event("e" * 10)) + 10


def test_only_the_entries_that_failed_are_sent_again() -> None:
    client, script = stubbed("events")
    pauses: list[float] = []
    calls: list[list[str]] = []
    client.meta.events.register(
        "provide-client-params.events.PutEvents", lambda params, **_: calls.append(names(params["Entries"]))
    )
    first = {"FailedEntryCount": 2, "Entries": [SENT, BROKEN, BROKEN]}
    script.add_response("put_events", first)
    script.add_response("put_events", {"FailedEntryCount": 1, "Entries": [BROKEN, SENT]})
    script.add_response("put_events", {"FailedEntryCount": 0, "Entries": [SENT]})
    publisher(client, pauses).publish([event("a"), event("b"), event("c")])
    assert calls == [["a", "b", "c"], ["b", "c"], ["b"]]
    assert pauses == [0.1, 0.2]


def test_it_gives_up_and_says_how_many_and_why() -> None:
    client, script = stubbed("events")
    for _ in range(MAX_TRIES):
        script.add_response("put_events", {"FailedEntryCount": 1, "Entries": [BROKEN]})
    with pytest.raises(PublishError, match=r"^1 of 1 events stayed unsent \(InternalFailure: 1\)$"):
        publisher(client).publish([event()])
    script.assert_no_pending_responses()


def test_a_refused_call_is_a_publish_error_with_its_code() -> None:
    client, script = stubbed("events")
    script.add_client_error("put_events", "AccessDeniedException", "no")
    with pytest.raises(PublishError, match="AccessDeniedException"):
        publisher(client).publish([event()])


def test_an_event_too_large_for_the_bus_is_refused_before_anything_is_sent() -> None:
    client, script = stubbed("events")
    with pytest.raises(PublishError, match="NodePool Changed is larger") as refused:
        publisher(client).publish([event(), event("y" * MAX_BYTES)])
    assert "yyy" not in str(refused.value)
    script.assert_no_pending_responses()


def test_a_call_refused_after_others_tells_only_the_rest_as_unsent() -> None:
    client, script = stubbed("events")
    script.add_response("put_events", {"FailedEntryCount": 1, "Entries": [BROKEN, *[SENT] * 9]})
    script.add_response("put_events", {"FailedEntryCount": 0, "Entries": [SENT] * 10})
    script.add_client_error("put_events", "ThrottlingException", "slower")
    events = [event(f"pool-{n}") for n in range(23)]
    with pytest.raises(PublishError, match="ThrottlingException") as refused:
        publisher(client).publish(events)
    assert list(refused.value.unsent) == [events[0], *events[20:]]
