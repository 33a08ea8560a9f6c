"""One call to an API server, on everything that it may answer. The errors are what the caller does next."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest
import requests
from nebula.http import Limits
from nebula.kubernetes.api import (
    ClusterUnavailableError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    KubernetesError,
    NotFoundError,
)
from nebula.kubernetes.client import KubernetesClient
from nebula.kubernetes.transport import LIMITS, ExpiredError, StaticToken, Transport, new_session
from pydantic import SecretStr

from local.in_process import DroppedError, session_over

SERVER = "https://kubernetes.invalid"
POD = {"kind": "Pod", "metadata": {"name": "a", "uid": "u"}}


class Answer(NamedTuple):
    status: int
    body: bytes | Iterator[bytes]
    headers: Mapping[str, str] = {}


def status(code: int, reason: str = "", **more: Any) -> Answer:
    told = {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": "env A: hunter2", **more}
    return Answer(code, json.dumps(told).encode())


OK = Answer(200, json.dumps(POD).encode())


class Server:
    """Answers with the next of a script; ``None`` cuts the connection."""

    def __init__(self, *script: Answer | None, limits: Limits = LIMITS, token: Any = None) -> None:
        self.script = list(script)
        self.asked: list[tuple[str, str]] = []
        self.tokens: list[str] = []
        self.slept: list[float] = []
        session = session_over(self, SERVER)
        tokens = StaticToken(SecretStr("token-1")) if token is None else token
        self.transport = Transport(SERVER, tokens, session, limits=limits, sleep=self.slept.append)
        self.client = KubernetesClient("c", self.transport)

    def handle(self, method: str, path: str, query: Any, headers: Mapping[str, str], body: bytes) -> Answer:
        self.asked.append((method, path))
        self.tokens.append(headers["Authorization"].removeprefix("Bearer "))
        step = self.script.pop(0)
        if step is None:
            raise DroppedError
        return step


class Renewable:
    def __init__(self) -> None:
        self.number = 1

    def token(self) -> SecretStr:
        return SecretStr(f"token-{self.number}")

    def renew(self) -> bool:
        self.number += 1
        return True


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "DELETE"])
def test_a_401_is_answered_once_with_a_new_token_whatever_the_verb(method: str) -> None:
    server = Server(status(401, "Unauthorized"), OK, token=Renewable())
    assert server.transport.call(method, "/api/v1/nodes/n", body={}) == POD
    assert server.tokens == ["token-1", "token-2"]


def test_a_second_401_is_an_answer() -> None:
    server = Server(status(401, "Unauthorized"), status(401, "Unauthorized"), token=Renewable())
    with pytest.raises(ForbiddenError, match="401 Unauthorized"):
        server.client.get_node("n")
    assert len(server.asked) == 2


def test_a_token_that_cannot_change_is_not_sent_twice() -> None:
    server = Server(status(401, "Unauthorized"))
    with pytest.raises(ForbiddenError):
        server.client.get_node("n")
    assert server.tokens == ["token-1"]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (status(403, "Forbidden"), ForbiddenError),
        (Answer(403, b"<html>no</html>"), ForbiddenError),
        (status(404, "NotFound"), NotFoundError),
        (Answer(404, b"404 page not found"), ClusterUnavailableError),
        (status(404, "Strange"), ClusterUnavailableError),
        (Answer(404, b'{"detail": "no such route"}'), ClusterUnavailableError),
        (status(409, "Conflict"), ConflictError),
        (status(409, "AlreadyExists"), ConflictError),
        (Answer(409, b"{}"), ClusterUnavailableError),
        (status(400, "BadRequest"), InvalidError),
        (status(413, "RequestEntityTooLarge"), InvalidError),
        (status(415, "UnsupportedMediaType"), InvalidError),
        (status(422, "Invalid"), InvalidError),
        (status(410, "Expired"), ExpiredError),
        (status(429, "TooManyRequests"), ClusterUnavailableError),
        (status(500, "InternalError"), ClusterUnavailableError),
        (Answer(502, b"<html>bad gateway</html>"), ClusterUnavailableError),
        (Answer(200, b"<html>login</html>"), ClusterUnavailableError),
        (Answer(200, b"[1]"), ClusterUnavailableError),
        (Answer(200, b""), ClusterUnavailableError),
        (Answer(302, b"", {"Location": "https://elsewhere.invalid/"}), ClusterUnavailableError),
    ],
)
def test_what_a_write_is_answered_names_the_next_move_and_no_content(
    answer: Answer, error: type[KubernetesError]
) -> None:
    server = Server(answer)
    with pytest.raises(error) as raised:
        server.client.patch_pod("default", "a", {})
    assert type(raised.value) is error
    assert "hunter2" not in str(raised.value)
    assert "PATCH /api/v1/namespaces/default/pods/a" in str(raised.value)
    assert server.asked == [("PATCH", "/api/v1/namespaces/default/pods/a")]


def test_an_invalid_write_names_fields_and_never_their_values() -> None:
    causes = [{"field": f"spec.f{n}", "reason": "FieldValueInvalid", "message": "hunter2"} for n in range(7)]
    server = Server(status(422, "Invalid", details={"causes": [*causes, "junk"]}))
    with pytest.raises(InvalidError) as raised:
        server.client.patch_pod("default", "a", {})
    assert "spec.f0 FieldValueInvalid" in str(raised.value)
    assert "spec.f5" not in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_a_read_waits_as_long_as_it_is_told_and_asks_again() -> None:
    throttled = status(429, "TooManyRequests")
    server = Server(throttled._replace(headers={"Retry-After": "2"}), throttled, OK)
    assert server.client.get_pod("default", "a") == POD
    assert server.slept == [2, 1]


@pytest.mark.parametrize("asked", ["3", "600", "9" * 5000])
def test_nobody_sleeps_longer_than_a_function_should(asked: str) -> None:
    server = Server(status(429, "TooManyRequests")._replace(headers={"Retry-After": asked}))
    with pytest.raises(ClusterUnavailableError, match="429"):
        server.client.get_pod("default", "a")
    assert server.slept == []


@pytest.mark.parametrize("odd", ["soon", "-1", "²", "1.5"])
def test_an_odd_retry_after_is_a_second(odd: str) -> None:
    server = Server(status(429)._replace(headers={"Retry-After": odd}), OK)
    server.client.get_pod("default", "a")
    assert server.slept == [1]


def test_a_throttled_read_is_given_up_after_three_tries_and_a_write_at_once() -> None:
    server = Server(*[status(429, "TooManyRequests")] * 4)
    with pytest.raises(ClusterUnavailableError):
        server.client.get_pod("default", "a")
    assert len(server.asked) == LIMITS.tries
    with pytest.raises(ClusterUnavailableError):
        server.client.create_node({})
    assert len(server.asked) == LIMITS.tries + 1


@pytest.mark.parametrize("broken", [None, Answer(503, b"<html>"), status(500, "InternalError")])
def test_a_broken_read_is_repeated_and_a_broken_write_is_not(broken: Answer | None) -> None:
    server = Server(broken, broken, OK)
    assert server.client.get_pod("default", "a") == POD
    server = Server(broken)
    with pytest.raises(ClusterUnavailableError):
        server.client.patch_pod_status("default", "a", {})
    assert len(server.asked) == 1


def test_an_answer_over_the_bound_is_unknown_and_never_absence() -> None:
    server = Server(Answer(200, b"x" * 2000), limits=Limits(max_bytes=1000))
    with pytest.raises(ClusterUnavailableError, match="more than 1000 bytes"):
        server.client.get_pod("default", "a")


def test_a_get_of_another_kind_is_no_answer() -> None:
    server = Server(Answer(200, b'{"kind": "PodList", "items": []}'))
    with pytest.raises(ClusterUnavailableError, match="is no Pod"):
        server.client.get_pod("default", "a")


def test_an_expired_page_begins_the_list_again_once() -> None:
    first = Answer(200, json.dumps({"kind": "PodList", "items": [POD], "metadata": {"continue": "t"}}).encode())
    last = Answer(200, json.dumps({"kind": "PodList", "items": None, "metadata": {}}).encode())
    server = Server(first, status(410, "Expired"), first, last)
    assert server.client.list_pods() == [POD]
    server = Server(first, status(410, "Expired"), first, status(410, "Expired"))
    with pytest.raises(ExpiredError):
        server.client.list_pods()


def test_listed_objects_come_without_the_record_of_their_writers() -> None:
    """Thousands of Pods are held at once, and it is most of what each weighs."""
    heavy = json.loads(json.dumps(POD))
    heavy["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    server = Server(Answer(200, json.dumps({"kind": "PodList", "items": [heavy, POD]}).encode()))
    assert server.client.list_pods() == [POD, POD]


def test_a_list_of_slow_pages_is_given_up_in_time() -> None:
    page = Answer(200, json.dumps({"kind": "PodList", "items": [POD], "metadata": {"continue": "t"}}).encode())
    server = Server(*[page] * 9)
    seconds = iter(range(0, 1000, 6))
    client = KubernetesClient("c", server.transport, monotonic=lambda: float(next(seconds)))
    with pytest.raises(ClusterUnavailableError, match="not listed in time, 4 objects so far"):
        client.list_pods()


def test_a_delete_of_a_pod_that_was_made_anew_is_done_and_of_the_same_one_is_a_conflict() -> None:
    other = Answer(200, json.dumps({**POD, "metadata": {"uid": "other"}}).encode())
    assert not Server(status(409, "Conflict"), other).client.delete_pod("default", "a", "u")
    assert not Server(status(409, "Conflict"), status(404, "NotFound")).client.delete_pod("default", "a", "u")
    with pytest.raises(ConflictError):
        Server(status(409, "Conflict"), OK).client.delete_pod("default", "a", "u")


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_would_leave_its_collection_is_never_sent(name: str) -> None:
    server = Server()
    for namespace, pod in (("default", name), (name, "a")):
        with pytest.raises(InvalidError):
            server.client.get_pod(namespace, pod)
    assert server.asked == []


def test_a_name_cannot_smuggle_a_path() -> None:
    server = Server(OK)
    server.client.get_pod("default", "a/../../b?x=1")
    assert server.asked == [("GET", "/api/v1/namespaces/default/pods/a%2F..%2F..%2Fb%3Fx%3D1")]


# Watches


def _watch(server: Server) -> list[str]:
    return list(server.transport.lines("/api/v1/pods", {"watch": "true"}, seconds=10, idle=5))


def test_a_watch_gives_its_lines_and_ends_with_the_stream() -> None:
    assert _watch(Server(Answer(200, iter([b'{"a":1}\n', b'{"b":2}\n'])))) == ['{"a":1}', '{"b":2}']


def test_a_watch_renews_its_token_once() -> None:
    server = Server(status(401, "Unauthorized"), Answer(200, iter([b"{}\n"])), token=Renewable())
    assert _watch(server) == ["{}"]
    assert server.tokens == ["token-1", "token-2"]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (status(410, "Expired"), ExpiredError),
        (status(403, "Forbidden"), ForbiddenError),
        (status(429, "TooManyRequests"), ClusterUnavailableError),
        (None, ClusterUnavailableError),
    ],
)
def test_a_watch_that_does_not_begin_says_why(answer: Answer | None, error: type[KubernetesError]) -> None:
    with pytest.raises(error):
        _watch(Server(answer))


# Trust


def test_a_session_takes_nothing_from_the_environment() -> None:
    session = new_session()
    assert isinstance(session, requests.Session)
    assert session.trust_env is False
