"""HTTP to a provider's API: timed, bounded, and retried only where a repetition does no harm.

What comes back is bytes and a status; what they mean is each provider's own table. Nothing that was
sent (headers, bodies) ever enters an exception text.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit

import urllib3

from nebula.http_pools import Opener, Pools

MAX_ANSWER_BYTES = 8 * 1024 * 1024
_CHUNK_BYTES = 64 * 1024
_OK = 200
_ACCEPTED = {"Accept": "*/*", "Accept-Encoding": "gzip, deflate"}
_REPEATABLE = frozenset({"GET", "HEAD", "DELETE"})
_BODILESS = frozenset({"GET", "HEAD"})
_PASSING = frozenset({500, 502, 503, 504})


class TransportError(Exception):
    """No answer, or not all of it: what was asked may or may not have happened."""


class AnswerTooLargeError(TransportError):
    """The answer is larger than its bound; nothing of it was kept."""


@dataclass(frozen=True)
class Limits:
    """Bounds of one call: seconds to connect, between two reads, and in all; bytes; tries of GET and DELETE."""

    connect: float = 5.0
    read: float = 20.0
    total: float = 30.0
    max_bytes: int = MAX_ANSWER_BYTES
    tries: int = 3
    backoff: float = 0.2


@dataclass(frozen=True)
class Answer:
    """One complete answer. Header names are matched without case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=urllib3.HTTPHeaderDict)
    body: bytes = b""


def new_session(*, pool_size: int = 16) -> Opener:
    """Kept connections to servers that public certificate authorities vouch for; nothing comes from the environment."""
    return Pools(pool_size=pool_size)


class HttpClient:
    """Sends one call and returns its answer, whatever the status. Safe to share between threads."""

    def __init__(
        self,
        session: Opener,
        *,
        limits: Limits | None = None,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session = session
        self._limits = limits or Limits()
        self._sleep = sleep
        self._monotonic = monotonic

    @property
    def seconds(self) -> float:
        """Seconds that a call may take in all where its caller sets no other bound."""
        return self._limits.total

    def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        seconds: float | None = None,
    ) -> Answer:
        """Send a call; ``seconds`` bounds it in all, repetitions included (default: ``limits.total``).

        GET and DELETE are repeated after a broken transport or a passing 5xx. Anything else goes out
        once: a lost answer to a POST may have made something. Raises ``TransportError``.
        """
        ends_at = self._monotonic() + (self._limits.total if seconds is None else seconds)
        tries = self._limits.tries if method.upper() in _REPEATABLE else 1
        for left in range(tries - 1, -1, -1):
            try:
                answer = self._once(method, url, headers, params, body, ends_at)
            except AnswerTooLargeError:
                raise
            except TransportError:
                if not left or not self._pause(tries - left, ends_at):
                    raise
                continue
            if answer.status not in _PASSING or not left or not self._pause(tries - left, ends_at):
                return answer
        raise TransportError(f"{method} {_place(url)}: no try was allowed")

    def lines(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        params: Mapping[str, str] | None = None,
        seconds: float,
        idle: float,
    ) -> tuple[Answer, Iterator[str]]:
        """GET a stream that need not end; its lines until ``idle`` seconds pass without one, or ``seconds`` in all.

        Any status but 200 comes back as a complete answer with no lines. Raises ``TransportError``
        when no answer began; a stream that breaks later just ends.
        """
        ends_at = self._monotonic() + seconds
        response = self._open("GET", url, headers, params, None, min(self._limits.connect, seconds), idle)
        if response.status != _OK:
            return self._complete("GET", url, response, ends_at), iter(())
        head = Answer(response.status, response.headers)
        return head, self._stream(response, ends_at)

    def _stream(self, response: urllib3.BaseHTTPResponse, ends_at: float) -> Iterator[str]:
        size = 0
        try:
            for line in _lines_of(response, self._limits.max_bytes):
                size += len(line)
                if size > self._limits.max_bytes or self._monotonic() > ends_at:
                    return
                yield line.decode("utf-8", "replace")
        except (urllib3.exceptions.HTTPError, OSError):
            return
        finally:
            response.close()

    def _pause(self, number: int, ends_at: float) -> bool:
        wait = self._limits.backoff * 2 ** (number - 1)
        if self._monotonic() + wait >= ends_at:
            return False
        self._sleep(wait)
        return True

    def _once(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        params: Mapping[str, str] | None,
        body: bytes | None,
        ends_at: float,
    ) -> Answer:
        left = ends_at - self._monotonic()
        if left <= 0:
            raise TransportError(f"{method} {_place(url)}: out of time")
        read = min(self._limits.read, left) if method.upper() in _REPEATABLE else left
        response = self._open(method, url, headers, params, body, min(self._limits.connect, left), read)
        return self._complete(method, url, response, ends_at)

    def _open(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        params: Mapping[str, str] | None,
        body: bytes | None,
        connect: float,
        read: float,
    ) -> urllib3.BaseHTTPResponse:
        verb = method.upper()
        target = f"{url}{'&' if '?' in url else '?'}{urlencode(params)}" if params else url
        sent = {**_ACCEPTED, **headers}
        if body is not None or verb not in _BODILESS:
            sent["Content-Length"] = str(len(body or b""))
        try:
            return self._session.open(verb, target, sent, body, connect=connect, read=read)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise TransportError(f"{method} {_place(url)}: {type(error).__name__}") from None

    def _complete(self, method: str, url: str, response: urllib3.BaseHTTPResponse, ends_at: float) -> Answer:
        parts: list[bytes] = []
        size = 0
        try:
            # What has come, not a full chunk: while that is waited for, a body may come byte by byte for ever.
            while part := response.read1(_CHUNK_BYTES):
                size += len(part)
                if size > self._limits.max_bytes:
                    raise AnswerTooLargeError(f"{method} {_place(url)}: more than {self._limits.max_bytes} bytes")
                if self._monotonic() > ends_at:
                    raise TransportError(f"{method} {_place(url)}: the answer took too long")
                parts.append(part)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise TransportError(f"{method} {_place(url)}: {type(error).__name__} inside the answer") from None
        finally:
            response.close()
        return Answer(response.status, response.headers, b"".join(parts))


def _lines_of(response: urllib3.BaseHTTPResponse, longest: int) -> Iterator[bytes]:
    """The lines of a body as they come; it ends where one is longer than ``longest`` bytes."""
    rest = b""
    while part := response.read1(_CHUNK_BYTES):
        *whole, rest = (rest + part).split(b"\n")
        yield from (line.removesuffix(b"\r") for line in whole)
        if len(rest) > longest:
            return
    if rest:
        yield rest


def _place(url: str) -> str:
    """Host and path of a URL; never its query or a user in it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "?"
    return f"{parts.hostname or ''}{parts.path}"
