"""What every handler does with a batch: partial failures, malformed events, nothing shown of their values."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from nebula.domain.unreadable import UnreadableClaim, UnreadableClaimError
from nebula.events.batch import handle
from nebula.events.details import PodDetail
from nebula.events.envelope import Envelope, MalformedEventError
from nebula.observability import MemoryTelemetry

CANARY = "hunter2-canary"
GOOD = {
    "source": "nebula.kubernetes",
    "detail-type": "Pod Gated",
    "detail": {"schema_version": 1, "cluster": "c", "namespace": "n", "name": "p", "uid": "u"},
}


def _changed(**detail: Any) -> str:
    return json.dumps({**GOOD, "detail": {**GOOD["detail"], **detail}})  # type: ignore[dict-item]


def _without(field: str) -> str:
    detail = {k: v for k, v in GOOD["detail"].items() if k != field}  # type: ignore[attr-defined]
    return json.dumps({**GOOD, "detail": detail})


MALFORMED = {
    "wrong type": (_changed(uid=7), "detail.uid: string_type"),
    "missing uid": (_without("uid"), "detail.uid: missing"),
    "a list for an object": (json.dumps([GOOD]), "event: expected an object, got list"),
    "a list for a text": (_changed(name=[CANARY]), "detail.name: string_type"),
    "junk of 200 KB": (CANARY * 14_000, "event: not JSON"),
    "junk of 200 KB in a field": (_changed(uid=CANARY * 14_000), "detail.uid: string_too_long"),
    "larger than an event can be": (_changed(uid="x" * 300_000), "event: larger than 262144 bytes"),
    "no detail": (json.dumps({"source": "a", "detail-type": "Pod Gated"}), "event.detail: missing"),
    "another detail-type": (json.dumps({**GOOD, "detail-type": CANARY}), "detail-type is not one"),
    "a name that is none": (_changed(name="../" + CANARY), "detail.name: string_pattern_mismatch"),
    "not UTF-8 of JSON": ("\x00{", "event: not JSON"),
}


def _batch(*bodies: str) -> dict[str, Any]:
    return {
        "Records": [
            {"messageId": f"m{n}", "eventSource": "aws:sqs", "body": body, "attributes": {}, "messageAttributes": {}}
            for n, body in enumerate(bodies)
        ]
    }


def _seen(into: list[str]) -> Any:
    def act(envelope: Envelope) -> str:
        into.append(envelope.read(PodDetail).uid)
        return "seen"

    return act


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_record_is_refused_by_field_and_harms_no_other(name: str) -> None:
    body, problem = MALFORMED[name]
    seen: list[str] = []
    telemetry = MemoryTelemetry()
    answer = handle(_batch(json.dumps(GOOD), body, json.dumps(GOOD)), _seen(seen), telemetry)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m1"}]}
    assert seen == ["u", "u"]
    said = repr(telemetry.lines)
    assert problem in said
    assert CANARY not in said
    assert telemetry.total("EventsRefused") == 1


def test_all_records_failing_is_an_answer_and_not_an_exception() -> None:
    def act(_: Envelope) -> str:
        raise RuntimeError(CANARY)

    telemetry = MemoryTelemetry()
    answer = handle(_batch(json.dumps(GOOD), json.dumps(GOOD)), act, telemetry)
    assert [f["itemIdentifier"] for f in answer["batchItemFailures"]] == ["m0", "m1"]
    assert "RuntimeError at test_handler_batches.py" in repr(telemetry.lines)
    assert CANARY not in repr(telemetry.lines)


def test_a_bare_event_is_taken_and_its_error_rises() -> None:
    seen: list[str] = []
    assert handle(GOOD, _seen(seen), MemoryTelemetry()) == {}
    assert seen == ["u"]
    with pytest.raises(MalformedEventError, match=r"detail.uid: missing"):
        handle(json.loads(_without("uid")), _seen(seen), MemoryTelemetry())


def test_an_event_about_a_claim_of_a_newer_release_is_taken_and_told_of() -> None:
    telemetry = MemoryTelemetry()

    def act(_: Envelope) -> str:
        raise UnreadableClaimError(UnreadableClaim(claim_id="a" * 32, problem="phase"))

    assert handle(_batch(json.dumps(GOOD)), act, telemetry) == {"batchItemFailures": []}
    assert telemetry.total("Defects") == 1
    assert telemetry.total("EventsFailed") == 0
    assert ("error", "event about an unreadable claim", {"claim_id": "a" * 32, "fields": "phase"}) in telemetry.lines


@pytest.mark.parametrize(("seconds", "tried"), [(2.9, 4), (3.0, 1)])
def test_a_cluster_that_hangs_takes_its_time_from_the_others_only_once(seconds: float, tried: int) -> None:
    clock = [100.0]
    seen: list[str] = []
    telemetry = MemoryTelemetry()

    def act(envelope: Envelope) -> str:
        cluster = envelope.read(PodDetail).cluster
        seen.append(cluster)
        if cluster == "hangs":
            clock[0] += seconds
            raise TimeoutError
        return "placed"

    bodies = [_changed(cluster=name) for name in ("hangs", "well", "hangs", "well", "hangs", "hangs", "well")]
    answer = handle(_batch(*bodies), act, telemetry, monotonic=lambda: clock[0])
    assert [f["itemIdentifier"] for f in answer["batchItemFailures"]] == ["m0", "m2", "m4", "m5"]
    assert (seen.count("hangs"), seen.count("well")) == (tried, 3)
    assert sum(text == "event put off" for _, text, _ in telemetry.lines) == 4 - tried
    assert telemetry.total("EventsFailed") == tried


def test_a_slow_failure_of_an_event_without_a_cluster_puts_nobody_off() -> None:
    clock = [0.0]
    seen: list[str] = []

    def act(envelope: Envelope) -> str:
        seen.append(envelope.detail_type)
        clock[0] += 60
        raise TimeoutError

    bodies = [json.dumps({**GOOD, "detail": {"instance-id": "i-1"}}) for _ in range(3)]
    answer = handle(_batch(*bodies, "junk"), act, MemoryTelemetry(), monotonic=lambda: clock[0])
    assert len(answer["batchItemFailures"]) == 4
    assert len(seen) == 3


@pytest.mark.parametrize("seconds", [30.0, 3.0])
@pytest.mark.parametrize(("spent", "done"), [(0.4, 3), (0.45, 2), (0.9, 1)])
def test_what_is_left_of_a_batch_when_time_is_up_is_put_off_but_the_first_is_always_tried(
    seconds: float, spent: float, done: int
) -> None:
    """``spent`` is each record's share of the time: what counts is the share, however long the function may run."""
    left = [seconds]
    seen: list[str] = []

    def act(envelope: Envelope) -> str:
        seen.append(envelope.read(PodDetail).uid)
        left[0] -= spent * seconds
        return "placed"

    context = SimpleNamespace(get_remaining_time_in_millis=lambda: int(left[0] * 1000))
    telemetry = MemoryTelemetry()
    bodies = [_changed(uid=f"u{number}") for number in range(4)]
    answer = handle(_batch(*bodies), act, telemetry, context=context, reserve=1 / 6)
    assert seen == [f"u{number}" for number in range(done)]
    assert [f["itemIdentifier"] for f in answer["batchItemFailures"]] == [f"m{number}" for number in range(done, 4)]
    assert ("warning", "batch cut short", {"done": done, "left": 4 - done}) in telemetry.lines
