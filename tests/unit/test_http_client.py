"""The shared HTTP client: what it bounds, repeats and keeps to itself."""

from __future__ import annotations

import contextlib
import io
import socket
from collections.abc import Callable, Iterator
from threading import Thread
from time import sleep
from typing import Any

import pytest
import requests
from nebula.http import AnswerTooLargeError, HttpClient, Limits, TransportError, new_session
from requests.adapters import BaseAdapter

URL = "http://service.invalid/v2/things"
HEADERS = {"Authorization": "Bearer s3cr3t"}


class Scripted(BaseAdapter):
    """Answers each request with the next of ``script``: a status, a body with status 200, or an error."""

    def __init__(self, *script: Any) -> None:
        super().__init__()
        self.script = list(script)
        self.requests: list[requests.PreparedRequest] = []
        self.timeouts: list[Any] = []

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        self.requests.append(request)
        self.timeouts.append(kwargs["timeout"])
        step = self.script.pop(0)
        if isinstance(step, Exception):
            raise step
        response = requests.Response()
        response.status_code = step if isinstance(step, int) else 200
        response.raw = io.BytesIO(step) if isinstance(step, bytes) else step if hasattr(step, "read") else io.BytesIO()
        response.url = URL
        return response

    def close(self) -> None:
        pass


class Drip(io.RawIOBase):
    """A body that comes a byte at a time while ``tick`` is called."""

    def __init__(self, tick: Callable[[], None], error: Exception | None = None) -> None:
        self._tick = tick
        self._error = error

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        self._tick()
        if self._error is not None:
            raise self._error
        return b"x"

    read1 = read


class Time:
    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def pass_one(self) -> None:
        self.now += 1


def client(adapter: Scripted, time: Time | None = None, **limits: Any) -> HttpClient:
    session = requests.Session()
    session.trust_env = False
    session.mount("http://", adapter)
    time = time or Time()
    return HttpClient(session, limits=Limits(**limits), sleep=time.sleep, monotonic=lambda: time.now)


def test_an_answer_is_given_whatever_its_status() -> None:
    answer = client(Scripted(418)).send("GET", URL, headers=HEADERS)
    assert (answer.status, answer.body) == (418, b"")


@pytest.mark.parametrize("method", ["GET", "DELETE", "HEAD"])
@pytest.mark.parametrize("first", [500, 502, 503, 504, requests.ConnectionError("x"), requests.ReadTimeout("x")])
def test_repeatable_calls_are_repeated(method: str, first: Any) -> None:
    adapter = Scripted(first, first, 200)
    assert client(adapter).send(method, URL, headers=HEADERS).status == 200
    assert len(adapter.requests) == 3


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_others_are_not(method: str) -> None:
    adapter = Scripted(500, 200)
    assert client(adapter).send(method, URL, headers=HEADERS).status == 500
    adapter = Scripted(requests.ConnectionError("x"), 200)
    with pytest.raises(TransportError):
        client(adapter).send(method, URL, headers=HEADERS)
    assert len(adapter.requests) == 1


def test_repetition_ends_with_the_last_answer_or_error() -> None:
    assert client(Scripted(503, 503, 503)).send("GET", URL, headers=HEADERS).status == 503
    with pytest.raises(TransportError):
        client(Scripted(503, 503, requests.ConnectionError("x"))).send("GET", URL, headers=HEADERS)


def test_no_repetition_is_begun_that_the_time_does_not_hold() -> None:
    time, adapter = Time(), Scripted(503, 503, 503)
    assert client(adapter, time, backoff=10.0).send("GET", URL, headers=HEADERS, seconds=12).status == 503
    assert len(adapter.requests) == 2
    assert time.slept == [10.0]


def test_timeouts_are_bounded_by_what_is_left() -> None:
    adapter = Scripted(200, 200)
    http = client(adapter, connect=5, read=20)
    http.send("GET", URL, headers=HEADERS, seconds=3)
    http.send("POST", URL, headers=HEADERS, seconds=45)
    assert adapter.timeouts == [(3, 3), (5, 45)]


def test_a_call_without_time_is_not_made() -> None:
    adapter = Scripted(200)
    with pytest.raises(TransportError, match="out of time"):
        client(adapter).send("POST", URL, headers=HEADERS, seconds=0)
    assert adapter.requests == []


def test_a_body_over_the_bound_is_refused_and_not_asked_for_again() -> None:
    assert client(Scripted(b"x" * 10), max_bytes=10).send("GET", URL, headers=HEADERS).body == b"x" * 10
    adapter = Scripted(b"x" * 11, b"")
    with pytest.raises(AnswerTooLargeError, match="10 bytes"):
        client(adapter, max_bytes=10).send("GET", URL, headers=HEADERS)
    assert len(adapter.requests) == 1


def test_a_body_that_drips_is_cut_off() -> None:
    time = Time()
    with pytest.raises(TransportError, match="too long"):
        client(Scripted(Drip(time.pass_one)), time, tries=1).send("GET", URL, headers=HEADERS, seconds=30)
    assert time.now <= 32


@pytest.mark.network
def test_a_body_that_drips_over_a_real_connection_is_cut_off_too() -> None:
    """Each byte comes well before the next read would be given up, and all of them would take four seconds."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                for _ in range(400):
                    connection.sendall(b"x")
                    sleep(0.01)

        Thread(target=answer, daemon=True).start()
        http = HttpClient(new_session(), limits=Limits(total=1.0, tries=1))
        with pytest.raises(TransportError, match="took too long"):
            http.send("GET", f"http://127.0.0.1:{server.getsockname()[1]}/", headers=HEADERS)


def test_a_body_that_breaks_is_no_answer() -> None:
    broken = Drip(lambda: None, ConnectionResetError("peer"))
    with pytest.raises(TransportError, match="inside the answer"):
        client(Scripted(broken)).send("POST", URL, headers=HEADERS)


@pytest.mark.parametrize(
    "error",
    [requests.ConnectionError("Bearer s3cr3t"), requests.exceptions.InvalidHeader("Bearer s3cr3t"), OSError("x")],
)
def test_errors_hold_nothing_that_was_sent(error: Exception) -> None:
    with pytest.raises(TransportError) as caught:
        client(Scripted(error)).send("POST", f"{URL}?token=t0ken", headers=HEADERS, body=b"b0dy")
    text = str(caught.value) + repr(caught.value.__cause__) + repr(caught.value.__suppress_context__)
    assert str(caught.value).startswith("POST service.invalid/v2/things: ")
    for secret in ("s3cr3t", "t0ken", "b0dy"):
        assert secret not in text


@pytest.mark.parametrize("url", ["nonsense", "http://[::1", "http://", "ftp://x/"])
def test_an_address_that_is_none_is_a_transport_error(url: str) -> None:
    with pytest.raises(TransportError):
        HttpClient(new_session(), sleep=lambda _: None).send("GET", url, headers=HEADERS)


def test_redirects_are_not_followed() -> None:
    adapter = Scripted(302, 200)
    assert client(adapter).send("GET", URL, headers=HEADERS).status == 302
    assert len(adapter.requests) == 1


def test_nothing_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / ".netrc").write_text("machine service.invalid login me password theirs\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    adapter = Scripted(200)
    session = new_session()
    session.mount("http://", adapter)
    HttpClient(session).send("GET", URL, headers=HEADERS)
    assert adapter.requests[0].headers["Authorization"] == "Bearer s3cr3t"


def lines(adapter: Scripted, time: Time | None = None, **limits: Any) -> tuple[int, Iterator[str]]:
    answer, text = client(adapter, time, **limits).lines(URL, headers=HEADERS, seconds=10, idle=5)
    return answer.status, text


def test_a_stream_gives_its_lines() -> None:
    status, text = lines(Scripted(b"one\ntwo\n\xff\n"))
    assert (status, list(text)) == (200, ["one", "two", "\ufffd"])


def test_a_stream_ends_when_it_breaks_or_falls_silent() -> None:
    _, text = lines(Scripted(Drip(lambda: None, requests.ConnectionError("read timed out"))))
    assert list(text) == []


def test_a_stream_is_bounded() -> None:
    _, text = lines(Scripted(b"0123456789\n" * 5), max_bytes=25)
    assert list(text) == ["0123456789"] * 2


def test_an_endless_stream_ends_by_the_clock() -> None:
    time = Time()

    class Endless(Drip):
        def read(self, size: int = -1) -> bytes:
            return super().read(size) and b"line\n"

    _, text = lines(Scripted(Endless(time.pass_one)), time)
    assert 0 < len(list(text)) <= 11


def test_a_stream_that_is_refused_is_an_answer() -> None:
    status, text = lines(Scripted(404))
    assert (status, list(text)) == (404, [])
    with pytest.raises(TransportError):
        lines(Scripted(requests.ConnectionError("x")))
