"""Polls a function's queues as Lambda's event source mappings do.

What a call handled is deleted; what it reports as failed, or all of it when the call itself fails, comes
back when its visibility runs out, until the queue's own redrive policy moves it to the dead letters.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from local.deployment import QueueMapping
from local.runtime import Outcome, Runtime

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef

logger = logging.getLogger(__name__)

#: More calls at once than this only make two cores wait.
MAX_CALLS_AT_ONCE = 8
_IDLE_SECONDS = (0.02, 0.05, 0.1, 0.2)


class Poller:
    """Feeds one function from one queue until stopped."""

    def __init__(self, client: SQSClient, mapping: QueueMapping, runtime: Runtime, region: str) -> None:
        self._client = client
        self._mapping = mapping
        self._runtime = runtime
        self._region = region
        self._stopping = threading.Event()
        workers = min(mapping.concurrency, MAX_CALLS_AT_ONCE)
        self._free = threading.Semaphore(workers)
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix=mapping.queue)
        self._thread = threading.Thread(target=self._run, name=f"poll {mapping.queue}", daemon=True)

    def start(self) -> None:
        """Start polling."""
        self._thread.start()

    def stop(self) -> None:
        """Receive no more and wait for the calls that run."""
        self._stopping.set()
        self._thread.join()
        self._pool.shutdown()

    def _run(self) -> None:
        idle = 0
        while not self._stopping.is_set():
            self._free.acquire()
            messages = self._receive()
            if messages:
                idle = 0
                self._pool.submit(self._call, messages)
                continue
            self._free.release()
            self._stopping.wait(_IDLE_SECONDS[min(idle, len(_IDLE_SECONDS) - 1)])
            idle += 1

    def _receive(self) -> list[MessageTypeDef]:
        try:
            answer = self._client.receive_message(
                QueueUrl=self._mapping.queue_url,
                MaxNumberOfMessages=min(10, self._mapping.batch_size),
                MessageSystemAttributeNames=["All"],
                WaitTimeSeconds=0,
            )
        except (ClientError, BotoCoreError) as error:
            logger.warning("cannot receive from %s: %s", self._mapping.queue, error)
            self._stopping.wait(1)
            return []
        return answer.get("Messages", [])

    def _call(self, messages: Sequence[MessageTypeDef]) -> None:
        try:
            outcome = self._runtime.invoke({"Records": [self._record(message) for message in messages]})
            failed = failed_items(outcome, [str(message["MessageId"]) for message in messages])
            self._delete([message for message in messages if message["MessageId"] not in failed])
        except (ClientError, BotoCoreError) as error:
            logger.warning("cannot delete from %s: %s", self._mapping.queue, error)
        finally:
            self._free.release()

    def _record(self, message: MessageTypeDef) -> dict[str, Any]:
        queue = self._mapping.queue_url.rsplit("/", 1)[1]
        return {
            "messageId": message["MessageId"],
            "receiptHandle": message["ReceiptHandle"],
            "body": message["Body"],
            "attributes": dict(message.get("Attributes", {})),
            "messageAttributes": {},
            "md5OfBody": message.get("MD5OfBody", ""),
            "eventSource": "aws:sqs",
            "eventSourceARN": f"arn:aws:sqs:{self._region}:123456789012:{queue}",
            "awsRegion": self._region,
        }

    def _delete(self, messages: Sequence[MessageTypeDef]) -> None:
        if messages:
            self._client.delete_message_batch(
                QueueUrl=self._mapping.queue_url,
                Entries=[{"Id": str(n), "ReceiptHandle": m["ReceiptHandle"]} for n, m in enumerate(messages)],
            )


def failed_items(outcome: Outcome, message_ids: Sequence[str]) -> set[str]:
    """Which messages of a batch come back, by Lambda's rules for ``ReportBatchItemFailures``.

    A failed call, an answer of another shape, or an unknown id returns the whole batch; an empty answer none.
    """
    everything = set(message_ids)
    if outcome.error:
        return everything
    if not outcome.result:
        return set()
    try:
        named = [str(item["itemIdentifier"]) for item in outcome.result.get("batchItemFailures") or ()]
    except (AttributeError, KeyError, TypeError):
        return everything
    return set(named) if set(named) <= everything else everything
