"""The local SQS: a message that arrives while others are deleted is there, and the deleted ones are not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from threading import Thread
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.core.utils import unix_time_millis
from moto.sqs import models

from local import messages

MODELS: Any = models
SESSION = boto3.session.Session("testing", "testing", region_name="eu-central-1")


@pytest.fixture
def sqs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(MODELS.Queue, "delete_message", MODELS.Queue.delete_message)
    monkeypatch.setattr(MODELS, "unix_time_millis", MODELS.unix_time_millis)
    messages.install()
    with mock_aws():
        yield SESSION.client("sqs")


def bodies(sqs: Any, url: str) -> list[str]:
    received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=0).get("Messages", [])
    return sorted(message["Body"] for message in received)


def test_a_message_that_arrives_between_two_deletes_is_kept(sqs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    url = sqs.create_queue(QueueName="events")["QueueUrl"]
    for body in ("first", "second"):
        sqs.send_message(QueueUrl=url, MessageBody=body)
    received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=2)["Messages"]
    handles = {message["Body"]: message["ReceiptHandle"] for message in received}
    (queue,) = models.sqs_backends[DEFAULT_ACCOUNT_ID]["eu-central-1"].queues.values()
    others: list[Thread] = []
    compare = MODELS.Message.had_receipt_handle

    def another_caller() -> None:
        queue.delete_message(handles["second"])
        queue.add_message(models.Message("third", "late"))

    def compared(message: Any, handle: str) -> bool:
        if message.body == "second" and not others:
            others.append(Thread(target=another_caller))
            others[0].start()
            others[0].join(0.3)
        return bool(compare(message, handle))

    monkeypatch.setattr(MODELS.Message, "had_receipt_handle", compared)
    sqs.delete_message(QueueUrl=url, ReceiptHandle=handles["first"])
    for other in others:
        other.join()
    assert [message.body for message in queue._messages] == ["late"]


def test_a_message_comes_back_when_its_visibility_runs_out(sqs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [time.time()]
    monkeypatch.setattr("local.messages.time.time", lambda: now[0])
    url = sqs.create_queue(QueueName="events", Attributes={"VisibilityTimeout": "30"})["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="once")
    now[0] += 1
    assert len(sqs.receive_message(QueueUrl=url)["Messages"]) == 1
    assert bodies(sqs, url) == []
    now[0] += 31
    assert bodies(sqs, url) == ["once"]


def test_the_clock_is_motos() -> None:
    before = unix_time_millis()
    assert before - 1 <= messages.milliseconds() <= unix_time_millis() + 1
