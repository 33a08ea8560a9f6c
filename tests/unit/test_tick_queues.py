"""Both tick queues: one envelope per delay; and the bus in memory."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from nebula.clock import ManualClock
from nebula.events.details import DetailType, NodePoolDetail, TickDetail
from nebula.events.envelope import Event, parse_envelope
from nebula.events.memory import MemoryPublisher, MemoryTickQueue, as_sqs_record
from nebula.events.publisher import PublishError
from nebula.events.sqs_ticks import MAX_TRIES, SqsTickQueue

from tests.support.aws_stubs import stubbed

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
DELAYS = [timedelta(seconds=15 * n) for n in range(1, 8)]


def sent_messages(client: Any) -> list[list[dict[str, Any]]]:
    calls: list[list[dict[str, Any]]] = []
    client.meta.events.register(
        "provide-client-params.sqs.SendMessageBatch", lambda params, **_: calls.append(list(params["Entries"]))
    )
    return calls


def accepted(*ids: str) -> list[dict[str, str]]:
    return [{"Id": key, "MessageId": key, "MD5OfMessageBody": "0"} for key in ids]


def refused(*ids: str) -> list[dict[str, Any]]:
    return [{"Id": key, "SenderFault": False, "Code": "InternalError"} for key in ids]


def queue(client: Any) -> SqsTickQueue:
    return SqsTickQueue(client, "https://queue.invalid/ticks", ManualClock(NOW))


def test_one_batch_of_delayed_envelopes() -> None:
    client, script = stubbed("sqs")
    calls = sent_messages(client)
    script.add_response("send_message_batch", {"Successful": accepted(*"0123456"), "Failed": []})
    queue(client).enqueue(DELAYS)
    (messages,) = calls
    assert [message["DelaySeconds"] for message in messages] == [15, 30, 45, 60, 75, 90, 105]
    envelope = parse_envelope(json.loads(messages[0]["MessageBody"]))
    assert (envelope.source, envelope.detail_type) == ("nebula.schedule", "Status Tick")
    assert envelope.read(TickDetail).due_at == NOW + timedelta(seconds=15)
    assert envelope.detail["schema_version"] == 1


def test_no_ticks_is_no_call() -> None:
    client, script = stubbed("sqs")
    queue(client).enqueue([])
    script.assert_no_pending_responses()


def test_only_refused_ticks_are_sent_again() -> None:
    client, script = stubbed("sqs")
    calls = sent_messages(client)
    script.add_response("send_message_batch", {"Successful": accepted("0", "2"), "Failed": refused("1")})
    script.add_response("send_message_batch", {"Successful": accepted("1"), "Failed": []})
    queue(client).enqueue(DELAYS[:3])
    assert [[message["Id"] for message in call] for call in calls] == [["0", "1", "2"], ["1"]]


def test_it_gives_up() -> None:
    client, script = stubbed("sqs")
    for _ in range(MAX_TRIES):
        script.add_response("send_message_batch", {"Successful": [], "Failed": refused("0")})
    with pytest.raises(PublishError, match="1 of 1 ticks"):
        queue(client).enqueue(DELAYS[:1])
    script.add_client_error("send_message_batch", "QueueDoesNotExist")
    with pytest.raises(PublishError):
        queue(client).enqueue(DELAYS[:1])


@pytest.mark.parametrize("delays", [DELAYS * 2, [timedelta(seconds=901)], [timedelta(seconds=-1)]])
def test_what_the_queue_cannot_take_is_refused(delays: list[timedelta]) -> None:
    client, _ = stubbed("sqs")
    with pytest.raises(ValueError, match="tick"):
        queue(client).enqueue(delays)


def test_the_memory_queue_hands_out_each_tick_once_when_it_is_due() -> None:
    clock = ManualClock(NOW)
    memory = MemoryTickQueue(clock)
    memory.enqueue([timedelta(seconds=30), timedelta(seconds=15)])
    assert memory.take_due() == []
    clock.advance(timedelta(seconds=30))
    taken = memory.take_due()
    assert [tick.due_at for tick in taken] == [NOW + timedelta(seconds=15), NOW + timedelta(seconds=30)]
    assert parse_envelope(taken[0].body).read(TickDetail).due_at == taken[0].due_at
    assert memory.take_due() == []


def test_the_memory_bus_keeps_envelopes_until_they_are_taken() -> None:
    bus = MemoryPublisher(ManualClock(NOW))
    event = Event(
        source="nebula.kubernetes",
        detail_type=DetailType.NODEPOOL_CHANGED,
        detail=NodePoolDetail(cluster="prod", name="gpus"),
    )
    bus.publish([event, event])
    first, second = bus.take()
    assert first["id"] != second["id"]
    assert parse_envelope(first).read(NodePoolDetail) == event.detail
    assert bus.take() == []
    assert bus.of_type(DetailType.NODEPOOL_CHANGED) == [event, event]
    assert bus.of_type(DetailType.CLAIM_DUE) == []


def test_the_memory_bus_fails_when_told() -> None:
    bus = MemoryPublisher(ManualClock(NOW))
    bus.fail_next()
    with pytest.raises(PublishError):
        bus.publish([])
    bus.publish([])
    assert bus.events == []


def test_an_envelope_as_an_sqs_record() -> None:
    record = as_sqs_record({"detail-type": "Status Tick"}, message_id="m", receives=3)
    assert json.loads(record["body"]) == {"detail-type": "Status Tick"}
    assert record["messageId"] == "m"
    assert record["attributes"]["ApproximateReceiveCount"] == "3"
