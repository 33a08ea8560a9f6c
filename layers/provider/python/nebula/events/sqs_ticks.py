"""The tick queue on SQS: one message per tick, in the shape of an event, delayed by the queue itself.

Limits: ten messages a batch, 900 s of delay
(https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from botocore.exceptions import BotoCoreError, ClientError

from nebula.clock import Clock
from nebula.events.entries import envelope_of, tick_event
from nebula.events.publisher import PublishError

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef

MAX_MESSAGES = 10
MAX_DELAY = timedelta(seconds=900)
MAX_TRIES = 3


class SqsTickQueue:
    """See ``TickQueue``. Does not sleep between tries: a tick that is lost is made good by the next minute."""

    def __init__(self, client: SQSClient, queue_url: str, clock: Clock) -> None:
        self._client = client
        self._queue_url = queue_url
        self._clock = clock

    def enqueue(self, delays: Sequence[timedelta]) -> None:
        """See ``TickQueue``. ValueError for more than ten, or a delay outside 0 to 900 s."""
        if len(delays) > MAX_MESSAGES:
            raise ValueError(f"{len(delays)} ticks do not fit one batch")
        if any(not timedelta(0) <= delay <= MAX_DELAY for delay in delays):
            raise ValueError(f"a tick's delay must be within 0 to {MAX_DELAY.total_seconds():.0f} s")
        left = {str(n): self._message(str(n), delay) for n, delay in enumerate(delays)}
        for _ in range(MAX_TRIES):
            if left:
                failed = self._send(list(left.values()))
                left = {key: message for key, message in left.items() if key in failed}
        if left:
            raise PublishError(f"{len(left)} of {len(delays)} ticks stayed unsent")

    def _send(self, messages: list[SendMessageBatchRequestEntryTypeDef]) -> set[str]:
        try:
            answer = self._client.send_message_batch(QueueUrl=self._queue_url, Entries=messages)
        except (ClientError, BotoCoreError) as error:
            raise PublishError(f"SendMessageBatch failed: {type(error).__name__}") from None
        return {failure["Id"] for failure in answer.get("Failed", [])}

    def _message(self, key: str, delay: timedelta) -> SendMessageBatchRequestEntryTypeDef:
        now = self._clock.now()
        body = envelope_of(tick_event(now + delay), event_id=str(uuid4()), time=now)
        return {"Id": key, "MessageBody": json.dumps(body), "DelaySeconds": math.ceil(delay.total_seconds())}
