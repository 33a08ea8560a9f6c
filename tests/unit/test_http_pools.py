"""The pools under the shared HTTP client: how it finds its connections."""

from __future__ import annotations

import contextlib
import gzip
import io
import socket
import struct
from pathlib import Path
from threading import Thread
from typing import Any

import certifi
import pytest
import urllib3
from nebula import http_pools
from nebula.http import HttpClient, TransportError, new_session
from nebula.http_pools import Pools


class Pool:
    """A pool that answers everything and notes what was asked."""

    def __init__(self, asked: list[tuple[Any, ...]]) -> None:
        self._asked = asked

    def urlopen(self, method: str, target: str, **options: Any) -> urllib3.HTTPResponse:
        self._asked.append((method, target, options))
        return urllib3.HTTPResponse(
            io.BytesIO(b"body"), headers={"Retry-After": "3"}, status=429, preload_content=False
        )


class Manager:
    """Counts the pools that are made; nothing is connected."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.asked: list[tuple[Any, ...]] = []

    def connection_from_url(self, url: str) -> Any:
        self.made.append(url)
        return Pool(self.asked)


@pytest.fixture
def manager() -> Manager:
    return Manager()


@pytest.fixture
def pools(manager: Manager) -> Pools:
    pools = Pools()
    pools._manager = manager  # type: ignore[assignment]
    return pools


@pytest.fixture
def http(pools: Pools) -> HttpClient:
    return HttpClient(pools)


def test_one_pool_serves_every_path_of_an_address(http: HttpClient, manager: Manager) -> None:
    http.send("GET", "http://api.invalid:6443/a/b", headers={}, params={"limit": "500", "continue": "a b"})
    http.send("GET", "http://api.invalid:6443", headers={})
    http.send("GET", "http://other.invalid/a", headers={})
    assert len(manager.made) == 2
    assert [target for _, target, _ in manager.asked] == ["/a/b?limit=500&continue=a+b", "/", "/a"]


def test_pools_do_not_pile_up(http: HttpClient, pools: Pools) -> None:
    for number in range(20):
        http.send("GET", f"http://host-{number}.invalid/", headers={})
    assert len(pools._pools) <= 4


def test_an_answer_keeps_its_status_headers_and_body(http: HttpClient) -> None:
    answer = http.send("POST", "http://api.invalid/", headers={}, body=b"x")
    assert (answer.status, answer.headers["retry-after"], answer.body) == (429, "3", b"body")


@pytest.mark.parametrize(
    ("method", "body", "length"), [("GET", None, None), ("DELETE", None, "0"), ("PATCH", b"{}", "2")]
)
def test_the_length_of_a_body_is_said(
    http: HttpClient, manager: Manager, method: str, body: bytes | None, length: str | None
) -> None:
    http.send(method, "http://api.invalid/", headers={}, body=body)
    ((_, _, options),) = manager.asked
    assert options["headers"].get("Content-Length") == length
    assert (options["redirect"], options["retries"], options["body"]) == (False, False, body)


def test_public_authorities_are_trusted_and_nobody_else() -> None:
    pool, target = Pools()._pool("https://api.invalid/x")
    assert isinstance(pool, urllib3.HTTPSConnectionPool)
    assert (pool.cert_reqs, pool.ca_certs, target) == ("CERT_REQUIRED", certifi.where(), "/x")


def test_nothing_comes_from_the_environment(
    http: HttpClient, manager: Manager, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A ``.netrc`` would replace the key that we send, a proxy would see it."""
    (tmp_path / ".netrc").write_text("machine api.invalid login me password theirs\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.invalid")
    http.send("GET", "http://api.invalid/", headers={"Authorization": "Bearer ours"})
    ((_, target, options),) = manager.asked
    assert (manager.made, target, options["headers"]["Authorization"]) == (["http://api.invalid"], "/", "Bearer ours")


@pytest.mark.network
def test_a_packed_answer_is_unpacked() -> None:
    packed = gzip.compress(b"some text")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                assert b"Accept-Encoding: gzip" in connection.recv(65536)
                head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n"
                connection.sendall(head.encode() + packed)

        Thread(target=answer, daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        assert HttpClient(new_session()).send("POST", url, headers={}).body == b"some text"


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
    monkeypatch.setattr("nebula.http_pools.time.time", lambda: now)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/"
        Thread(target=_answer_once_each, args=(server,), daemon=True).start()
        http = HttpClient(new_session())
        assert http.send("GET", address, headers={}).status == 200
        now += idle
        if abs(idle) > http_pools.IDLE_SECONDS:
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
