"""The local AWS answers DynamoDB's calls one at a time, and everything else as it comes."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Barrier, BrokenBarrierError, Thread
from typing import TYPE_CHECKING, Any

import pytest

from local.servers import one_at_a_time

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
