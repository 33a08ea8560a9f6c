"""The local AWS answers DynamoDB's calls one at a time, all else as it comes; what it found out, it keeps."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from threading import Barrier, BrokenBarrierError, Thread
from typing import TYPE_CHECKING, Any

import pytest
from moto.events.utils import EventTemplateParser
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from local.servers import one_at_a_time, remember

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment


CALLS = [("DynamoDB_20120810.PutItem", False), ("AmazonSQS.SendMessage", True)]


@pytest.mark.parametrize(("target", "together"), CALLS)
def test_calls_to_one_service_never_overlap(target: str, together: bool) -> None:
    meeting = Barrier(2)
    met: list[bool] = []

    def application(_environ: WSGIEnvironment, _start: StartResponse) -> Iterable[bytes]:
        try:
            meeting.wait(0.3)
        except BrokenBarrierError:
            met.append(False)
        else:
            met.append(True)
        return [b""]

    def ignore(*_: Any) -> Any:
        return None

    served = one_at_a_time(application, "DynamoDB_")
    callers = [Thread(target=served, args=({"HTTP_X_AMZ_TARGET": target}, ignore)) for _ in range(2)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert met == [together, together]


def test_a_path_is_read_once_and_every_event_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    paths: Any = import_module("jsonpath_ng.ext")
    read: list[str] = []
    parse = paths.parse

    def counted(path: str) -> Any:
        read.append(path)
        return parse(path)

    monkeypatch.setattr(paths, "parse", counted)
    remember(paths, "parse")
    transform: Any = EventTemplateParser.parse
    event = {"ingestion-time": 1.0}
    made = [
        transform('{"pod": "<pod>"}', {"pod": "$.detail.pod"}, {**event, "detail": {"pod": name}})
        for name in ("a", "b", "a")
    ]
    assert made == [{"pod": "a"}, {"pod": "b"}, {"pod": "a"}]
    assert read == ["$.detail.pod"]


def test_whose_call_it_is_stays_known() -> None:
    dispatcher: Any = DomainDispatcherApplication(create_backend_app)
    hosts = (
        "sqs.us-east-1.amazonaws.com",
        "dynamodb",
        "events.us-east-1.amazonaws.com",
        None,
        "sqs.us-east-1.amazonaws.com",
    )
    by_moto = [dispatcher.get_backend_for_host(host) for host in hosts]
    remember(dispatcher, "get_backend_for_host")
    assert [dispatcher.get_backend_for_host(host) for host in hosts] == by_moto
    assert by_moto[:3] == ["sqs", "dynamodb", "events"]
    dispatcher.backend_url_patterns = []
    assert dispatcher.get_backend_for_host(hosts[0]) == "sqs"
