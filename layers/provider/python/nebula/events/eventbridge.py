"""The bus on EventBridge.

Limits of one PutEvents call: ten entries, 256 KB in all
(https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevents.html).
An answer of 200 may still hold entries that failed: those alone are sent again.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from nebula.events.entries import bus_size, detail_json
from nebula.events.envelope import Event
from nebula.events.publisher import PublishError

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_events.type_defs import PutEventsRequestEntryTypeDef

MAX_ENTRIES = 10
MAX_BYTES = 256 * 1024
MAX_TRIES = 4
FIRST_PAUSE_SECONDS = 0.05


class EventBridgePublisher:
    """See ``Publisher``. ``sleep`` takes seconds; ``chance`` gives 0 to 1."""

    def __init__(
        self,
        client: EventBridgeClient,
        bus: str,
        *,
        sleep: Callable[[float], None] = time.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._bus = bus
        self._sleep = sleep
        self._chance = chance

    def publish(self, events: Sequence[Event]) -> None:
        """See ``Publisher``. An event over 256 KB is refused before anything is sent."""
        for event in events:
            if bus_size(event) > MAX_BYTES:
                raise PublishError(f"a {event.detail_type} is larger than {MAX_BYTES} bytes")
        left = list(events)
        codes: Counter[str] = Counter()
        for attempt in range(MAX_TRIES):
            if attempt and left:
                self._sleep(FIRST_PAUSE_SECONDS * 2**attempt * self._chance())
            failed: list[Event] = []
            codes.clear()
            taken = 0
            for batch in batches(left):
                try:
                    failed += self._put(batch, codes)
                except (ClientError, BotoCoreError) as error:
                    # What earlier batches put is on the bus: only the rest is told to be unsent.
                    raise PublishError(f"PutEvents failed: {_code(error)}", failed + left[taken:]) from None
                taken += len(batch)
            left = failed
        if left:
            why = ", ".join(f"{code}: {times}" for code, times in sorted(codes.items()))
            raise PublishError(f"{len(left)} of {len(events)} events stayed unsent ({why})", left)

    def _put(self, batch: Sequence[Event], codes: Counter[str]) -> list[Event]:
        """Send one batch; the entries that failed, their codes counted."""
        answer = self._client.put_events(Entries=[self._entry(event) for event in batch])
        if not answer["FailedEntryCount"]:
            return []
        failed = [(e, r["ErrorCode"]) for e, r in zip(batch, answer["Entries"], strict=True) if "ErrorCode" in r]
        codes.update(code for _, code in failed)
        return [event for event, _ in failed]

    def _entry(self, event: Event) -> PutEventsRequestEntryTypeDef:
        return {
            "EventBusName": self._bus,
            "Source": event.source,
            "DetailType": str(event.detail_type),
            "Detail": detail_json(event),
        }


def batches(events: Sequence[Event]) -> Iterator[list[Event]]:
    """Cut a sequence, in order, into what one call takes."""
    batch: list[Event] = []
    size = 0
    for event in events:
        bytes_of_event = bus_size(event)
        if batch and (len(batch) == MAX_ENTRIES or size + bytes_of_event > MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(event)
        size += bytes_of_event
    if batch:
        yield batch


def _code(error: ClientError | BotoCoreError) -> str:
    return error.response["Error"]["Code"] if isinstance(error, ClientError) else type(error).__name__
