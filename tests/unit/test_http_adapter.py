"""The adapter under the shared HTTP client: how it finds its connections."""

from __future__ import annotations

import contextlib
import io
import socket
import struct
from threading import Thread
from typing import Any

import pytest
import requests
import urllib3
from nebula import http_adapter
from nebula.http import HttpClient, TransportError, new_session
from nebula.http_adapter import DirectAdapter


class Pool:
    """A pool that answers everything and notes what was asked."""

    def __init__(self, asked: list[tuple[Any, ...]]) -> None:
        self._asked = asked

    def urlopen(self, method: str, target: str, **options: Any) -> urllib3.HTTPResponse:
        self._asked.append((method, target, options))
        return urllib3.HTTPResponse(
            io.BytesIO(b"body"), headers={"Retry-After": "3"}, status=429, preload_content=False
        )


class Counting(DirectAdapter):
    """Counts the pools that are made; nothing is connected."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[str] = []
        self.asked: list[tuple[Any, ...]] = []

    def get_connection_with_tls_context(self, request: Any, *_: Any, **__: Any) -> Any:
        self.made.append(request.url)
        return Pool(self.asked)


@pytest.fixture
def adapter() -> Counting:
    return Counting()


@pytest.fixture
def http(adapter: Counting) -> HttpClient:
    session = new_session()
    session.mount("http://", adapter)
    return HttpClient(session)


def test_one_pool_serves_every_path_of_an_address(http: HttpClient, adapter: Counting) -> None:
    http.send("GET", "http://api.invalid:6443/a/b", headers={}, params={"limit": "500", "continue": "a b"})
    http.send("GET", "http://api.invalid:6443", headers={})
    http.send("GET", "http://other.invalid/a", headers={})
    assert len(adapter.made) == 2
    assert [target for _, target, _ in adapter.asked] == ["/a/b?limit=500&continue=a+b", "/", "/a"]


def test_pools_do_not_pile_up(http: HttpClient, adapter: Counting) -> None:
    for number in range(20):
        http.send("GET", f"http://host-{number}.invalid/", headers={})
    assert len(adapter._pools) <= 4


def test_an_answer_keeps_its_status_headers_and_body(http: HttpClient) -> None:
    answer = http.send("POST", "http://api.invalid/", headers={}, body=b"x")
    assert (answer.status, answer.headers["retry-after"], answer.body) == (429, "3", b"body")


@pytest.mark.parametrize(
    ("method", "body", "length"), [("GET", None, None), ("DELETE", None, "0"), ("PATCH", b"{}", "2")]
)
def test_the_length_of_a_body_is_said(
    http: HttpClient, adapter: Counting, method: str, body: bytes | None, length: str | None
) -> None:
    http.send(method, "http://api.invalid/", headers={}, body=body)
    ((_, _, options),) = adapter.asked
    assert options["headers"].get("content-length") == length
    assert (options["redirect"], options["retries"], options["body"]) == (False, False, body)


def test_certificates_are_trusted_as_requests_does() -> None:
    adapter = DirectAdapter()
    request = requests.Request("GET", "https://api.invalid/x").prepare()
    pool, target = adapter._pool(request, str(request.url), True, None)
    assert isinstance(pool, urllib3.HTTPSConnectionPool)
    assert (pool.cert_reqs, bool(pool.ca_certs or pool.ca_cert_dir), target) == ("CERT_REQUIRED", True, "/x")


def test_a_header_that_would_split_the_request_is_not_sent() -> None:
    with pytest.raises(TransportError, match="ValueError"):
        HttpClient(new_session()).send("POST", "http://127.0.0.1:1/", headers={"Authorization": "a\r\nb: c"})


@pytest.mark.network
@pytest.mark.parametrize("idle", [5.0, 40.0, -40.0])
def test_a_connection_that_idled_long_is_not_trusted_with_a_create(
    idle: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The peer has given it up, and a function that was frozen has not heard of that: no answer would come."""
    now = 1_000_000.0
    monkeypatch.setattr("nebula.http_adapter.time.time", lambda: now)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/"
        Thread(target=_answer_once_each, args=(server,), daemon=True).start()
        http = HttpClient(new_session())
        assert http.send("GET", address, headers={}).status == 200
        now += idle
        if abs(idle) > http_adapter.IDLE_SECONDS:
            assert http.send("POST", address, headers={}, body=b"x").status == 200
        else:
            with pytest.raises(TransportError):
                http.send("POST", address, headers={}, body=b"x")


def _answer_once_each(server: socket.socket) -> None:
    """Answer the first call of each connection, and reset the connection at the second."""
    with contextlib.suppress(OSError):
        while True:
            connection, _ = server.accept()
            Thread(target=_answer_once, args=(connection,), daemon=True).start()


def _answer_once(connection: socket.socket) -> None:
    with connection, contextlib.suppress(OSError):
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        connection.recv(65536)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
