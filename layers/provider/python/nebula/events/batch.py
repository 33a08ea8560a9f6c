"""How every handler takes its events: an SQS batch with partial failures, or one event bare.

The answer's shape: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html. Powertools'
processor would write the same, and import a model of every event source with it: a tenth of a second of each
cold start.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from nebula.domain.claim import Claim
from nebula.domain.unreadable import UnreadableClaimError
from nebula.events.envelope import Envelope, MalformedEventError, parse_envelope
from nebula.observability import Telemetry

Act = Callable[[Envelope], str]

#: EventBridge's own limit for one entry, https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevents.html
MAX_BODY = 256 * 1024
#: What a line in the log says of an event: which object or claim it was about, cut to a sane length.
_NAMED = ("cluster", "namespace", "uid", "claim_id", "instance-id", "credential_key")
_SHOWN_CHARACTERS = 256
#: A record that fails after so long has waited for somebody who does not answer.
SLOW_SECONDS = 3.0


class LambdaContext(Protocol):
    """What is used of Lambda's context."""

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until this invocation is stopped."""
        ...


def handle(
    event: object,
    act: Act,
    telemetry: Telemetry,
    *,
    context: LambdaContext | None = None,
    reserve: float = 0.0,
    monotonic: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """Run ``act`` for each event; returns ``batchItemFailures`` for an SQS batch, ``{}`` for a bare event.

    ``act`` answers with the outcome in a few words; each event leaves one line with it. A record that fails is named
    in the answer and comes again; the others are not touched by it, unless it failed slowly: then those of the same
    cluster are put off untried, so that a cluster that hangs does not take the function's time from the rest of the
    batch. With a ``context`` what is left of a batch when less than the share ``reserve`` of the invocation's time is
    left is put off too: of a function that is stopped in the middle every record would come again. A malformed record
    is refused with the fields named and no value shown. One about a claim that only a newer release can read is taken
    without effect: the ledger brings the claim up again, and the message would only die. A bare event's error rises.
    """
    whole = context.get_remaining_time_in_millis() if context is not None else 0

    def has_time() -> bool:
        return context is None or context.get_remaining_time_in_millis() >= reserve * whole

    if isinstance(event, Mapping) and "Records" in event:
        return _batch(event["Records"], act, telemetry, monotonic, has_time)
    _run(parse_envelope(event), act, telemetry)
    return {}


def outcome_of(claim: Claim | None) -> str:
    """What an event came to, from the claim as it stands after it."""
    if claim is None:
        return "no claim"
    return f"{claim.phase} ({claim.reason})" if claim.reason else str(claim.phase)


def _run(envelope: Envelope, act: Act, telemetry: Telemetry) -> None:
    outcome = act(envelope)
    told = envelope.detail
    about = {key.replace("-", "_"): told[key][:_SHOWN_CHARACTERS] for key in _NAMED if isinstance(told.get(key), str)}
    if isinstance(told.get("name"), str):
        # Not ``name``: the logger keeps that one for itself.
        about["object"] = told["name"][:_SHOWN_CHARACTERS]
    telemetry.info("event handled", detail_type=envelope.detail_type, outcome=outcome, **about)


def _batch(
    records: Sequence[Mapping[str, Any]],
    act: Act,
    telemetry: Telemetry,
    monotonic: Callable[[], float],
    has_time: Callable[[], bool],
) -> dict[str, Any]:
    failed: list[str] = []
    silent: set[str] = set()
    for number, record in enumerate(records):
        if number and not has_time():
            telemetry.warning("batch cut short", done=number, left=len(records) - number)
            failed += [left["messageId"] for left in records[number:]]
            break
        cluster = _cluster_of(record) if silent else ""
        began = monotonic()
        if cluster in silent:
            telemetry.warning("event put off", message_id=record["messageId"], cluster=cluster)
            failed.append(record["messageId"])
        elif not _handled(record, act, telemetry):
            failed.append(record["messageId"])
            silent |= {_cluster_of(record)} - {""} if monotonic() - began >= SLOW_SECONDS else set()
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


def _cluster_of(record: Mapping[str, Any]) -> str:
    """The cluster that a record speaks of, "" where it names none."""
    try:
        cluster = _read(record["body"]).detail.get("cluster")
    except MalformedEventError:
        return ""
    return cluster if isinstance(cluster, str) else ""


def _handled(record: Mapping[str, Any], act: Act, telemetry: Telemetry) -> bool:
    try:
        _run(_read(record["body"]), act, telemetry)
    except MalformedEventError as error:
        telemetry.error("event refused", message_id=record["messageId"], problem=str(error))
        telemetry.count("EventsRefused")
        return False
    except UnreadableClaimError as error:
        telemetry.error("event about an unreadable claim", claim_id=error.row.claim_id, fields=error.row.problem)
        telemetry.count("Defects")
    except Exception as error:  # noqa: BLE001 - whatever one record does, the others have their turn
        telemetry.error("event failed", message_id=record["messageId"], error=where(error))
        telemetry.count("EventsFailed")
        return False
    return True


def where(error: Exception) -> str:
    """Class and place of an unexpected error: its text might quote what it choked on."""
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1] if frames else None
    return type(error).__name__ + (f" at {Path(last.filename).name}:{last.lineno}" if last else "")


def _read(body: str) -> Envelope:
    if len(body.encode()) > MAX_BODY:
        raise MalformedEventError(f"event: larger than {MAX_BODY} bytes")
    try:
        decoded = json.loads(body)
    except ValueError:
        raise MalformedEventError("event: not JSON") from None
    return parse_envelope(decoded)
