"""HTTP to a provider's API: timed, bounded, and retried only where a repetition does no harm.

What comes back is bytes and a status; what they mean is each provider's own table. Nothing that was
sent (headers, bodies) ever enters an exception text.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit

import requests
import urllib3
from requests.structures import CaseInsensitiveDict

from nebula.http_adapter import DirectAdapter

MAX_ANSWER_BYTES = 8 * 1024 * 1024
_CHUNK_BYTES = 64 * 1024
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
    headers: Mapping[str, str] = field(default_factory=CaseInsensitiveDict)
    body: bytes = b""


def new_session(*, pool_size: int = 16) -> requests.Session:
    """A session that takes nothing from the environment: a ``.netrc`` would replace the key that we send."""
    session = requests.Session()
    session.trust_env = False
    for scheme in ("http://", "https://"):
        session.mount(scheme, DirectAdapter(pool_size=pool_size))
    return session


class HttpClient:
    """Sends one call and returns its answer, whatever the status. Safe to share between threads."""

    def __init__(
        self,
        session: requests.Session,
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
        if response.status_code != requests.codes.ok:
            return self._complete("GET", url, response, ends_at), iter(())
        head = Answer(response.status_code, response.headers)
        return head, self._stream(response, ends_at)

    def _stream(self, response: requests.Response, ends_at: float) -> Iterator[str]:
        size = 0
        try:
            for line in response.iter_lines(chunk_size=512):
                size += len(line)
                if size > self._limits.max_bytes or self._monotonic() > ends_at:
                    return
                yield line.decode("utf-8", "replace")
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError):
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
    ) -> requests.Response:
        # Straight to the adapter: a session would add cookies, redirects and the environment's own ideas to every
        # call, none of which we want, at most of its processor time.
        request = requests.PreparedRequest()
        request.method = method.upper()
        request.url = f"{url}{'&' if '?' in url else '?'}{urlencode(params)}" if params else url
        request.headers = CaseInsensitiveDict({**self._session.headers, **headers})  # type: ignore[arg-type]
        request.body = body
        if body is not None or request.method not in _BODILESS:
            request.headers["Content-Length"] = str(len(body or b""))
        try:
            adapter = self._session.get_adapter(request.url)
            verify = True if self._session.verify is None else self._session.verify
            return adapter.send(
                request, stream=True, timeout=(connect, read), verify=verify, cert=self._session.cert
            )  # fmt: skip
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise TransportError(f"{method} {_place(url)}: {type(error).__name__}") from None

    def _complete(self, method: str, url: str, response: requests.Response, ends_at: float) -> Answer:
        parts: list[bytes] = []
        size = 0
        try:
            # What has come, not a full chunk: while that is waited for, a body may come byte by byte for ever.
            while part := response.raw.read1(_CHUNK_BYTES):
                size += len(part)
                if size > self._limits.max_bytes:
                    raise AnswerTooLargeError(f"{method} {_place(url)}: more than {self._limits.max_bytes} bytes")
                if self._monotonic() > ends_at:
                    raise TransportError(f"{method} {_place(url)}: the answer took too long")
                parts.append(part)
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            raise TransportError(f"{method} {_place(url)}: {type(error).__name__} inside the answer") from None
        finally:
            response.close()
        return Answer(response.status_code, response.headers, b"".join(parts))


def _place(url: str) -> str:
    """Host and path of a URL; never its query or a user in it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "?"
    return f"{parts.hostname or ''}{parts.path}"
