"""HTTP to one API server: bounded, timed, retried where that is safe, and silent about what it carried.

An answer that does not look like a Kubernetes answer is never taken for absence: a proxy's or another
service's 404 raises ``ClusterUnavailableError``, only a ``Status`` with reason ``NotFound`` is a 404.
Error texts hold the call and the server's reason and field names, never its message: a 422 quotes the
object, and with it environment values.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol

import requests
from pydantic import SecretStr

from nebula import http
from nebula.http import Answer, AnswerTooLargeError, HttpClient, Limits, TransportError
from nebula.http_adapter import DirectAdapter
from nebula.kubernetes.api import (
    ClusterUnavailableError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    KubernetesError,
    NotFoundError,
    Object,
)

#: Of one call: seconds to connect, between two reads and in all; bytes (a page of 500 Pods is a few MiB).
LIMITS: Final = Limits(connect=3.0, read=10.0, total=15.0, max_bytes=32 * 1024 * 1024, tries=3)
_MAX_FIELDS: Final = 5
_MAX_WAIT_SECONDS: Final = 2
_TOO_MANY: Final = 429
_GONE: Final = 410


class ExpiredError(ClusterUnavailableError):
    """410: a continue token or a resourceVersion is older than the server's history."""


class TooLargeError(ClusterUnavailableError):
    """The answer is larger than ``LIMITS`` allow; fewer objects at once may fit."""


class TokenSource(Protocol):
    """Gives the bearer token of a cluster."""

    def token(self) -> SecretStr:
        """The token to send now."""
        ...

    def renew(self) -> bool:
        """Called once after a 401: drop what is cached; False when a new token cannot differ."""
        ...


class StaticToken:
    """A token that never changes."""

    def __init__(self, token: SecretStr) -> None:
        self._token = token

    def token(self) -> SecretStr:
        """See ``TokenSource``."""
        return self._token

    def renew(self) -> bool:
        """See ``TokenSource``: nothing to renew."""
        return False


class ClusterAuthorityAdapter(DirectAdapter):
    """Trusts exactly one certificate authority, held in memory: no file, no public roots beside it."""

    def __init__(self, ca_pem: str, *, pool_size: int = 16) -> None:
        self._context = ssl.create_default_context(cadata=ca_pem)
        # Chain, times and name are checked as ever; older EKS clusters' certificates lack the key identifiers that
        # Python asks for besides since 3.13, and other clients take them (kubernetes-client/python#2394).
        self._context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        super().__init__(pool_size=pool_size)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> Any:
        """Give every pool our context."""
        return super().init_poolmanager(*args, ssl_context=self._context, **kwargs)

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:  # noqa: ARG002
        """Keep requests from adding its bundle of public roots to the context."""
        conn.cert_reqs = "CERT_REQUIRED"


def new_session(ca_pem: str | None = None, *, pool_size: int = 16) -> requests.Session:
    """A session that takes nothing from the environment and trusts ``ca_pem`` only, if there is one.

    Raises ``ssl.SSLError`` when ``ca_pem`` is no certificate.
    """
    session = http.new_session(pool_size=pool_size)
    if ca_pem is not None:
        session.mount("https://", ClusterAuthorityAdapter(ca_pem, pool_size=pool_size))
    return session


class Transport:
    """Sends one call and returns the decoded object, or raises an error of ``kubernetes/api.py``."""

    def __init__(
        self,
        server: str,
        tokens: TokenSource | None,
        session: requests.Session,
        *,
        limits: Limits = LIMITS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._server = server.rstrip("/")
        self._tokens = tokens
        self._http = HttpClient(session, limits=limits, sleep=sleep)
        self._tries = limits.tries
        self._sleep = sleep

    @property
    def seconds(self) -> float:
        """Seconds that one call may take in all."""
        return self._http.seconds

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> Object:
        """One call. Reads are tried again; a 401 is answered once with a renewed token, whatever the verb."""
        payload = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        throttled = 0
        renewed = False
        while True:
            status, headers, raw = self._send(method, path, query, payload, content_type)
            if status == 401 and not renewed and self._tokens is not None and self._tokens.renew():
                renewed = True
            elif status == _TOO_MANY and method == "GET" and throttled < self._tries - 1 and self._waited(headers):
                throttled += 1
            else:
                return _decode(f"{method} {path}", status, raw)

    def lines(self, path: str, query: Mapping[str, str], *, seconds: float, idle: float) -> Iterator[str]:
        """The lines of a watch, until it ends or is silent for ``idle`` seconds. Errors as of ``call``."""
        answer, lines = self._open(path, query, seconds, idle)
        if answer.status == 401 and self._tokens is not None and self._tokens.renew():
            answer, lines = self._open(path, query, seconds, idle)
        if answer.status != 200:
            _decode(f"WATCH {path}", answer.status, answer.body)
        return lines

    def _open(self, path: str, query: Mapping[str, str], seconds: float, idle: float) -> tuple[Answer, Iterator[str]]:
        url = self._server + path
        try:
            return self._http.lines(url, headers=self._headers(), params=query, seconds=seconds, idle=idle)
        except TransportError as error:
            raise ClusterUnavailableError(str(error)) from None

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": "nebula-serverless"}
        if self._tokens is not None:
            headers["Authorization"] = f"Bearer {self._tokens.token().get_secret_value()}"
        return headers

    def _send(
        self, method: str, path: str, query: Mapping[str, str] | None, payload: bytes | None, content_type: str
    ) -> tuple[int, Mapping[str, str], bytes]:
        headers = self._headers()
        if payload is not None:
            headers["Content-Type"] = content_type
        try:
            answer = self._http.send(method, self._server + path, headers=headers, params=query, body=payload)
        except AnswerTooLargeError as error:
            raise TooLargeError(str(error)) from None
        except TransportError as error:
            raise ClusterUnavailableError(str(error)) from None
        return answer.status, answer.headers, answer.body

    def _waited(self, headers: Mapping[str, str]) -> bool:
        """Wait as long as the server asks; False when that is longer than a function should sleep."""
        text = headers.get("Retry-After", "1")
        seconds = int(text[:9]) if text.isascii() and text.isdigit() else 1
        if seconds > _MAX_WAIT_SECONDS:
            return False
        self._sleep(seconds)
        return True


class Calls(Protocol):
    """What sends a call: a ``Transport``, or what stands before one."""

    def call(self, method: str, path: str, *, query: Mapping[str, str] | None = None) -> Object:
        """See ``Transport.call``."""
        ...


def fitting_page(calls: Calls, path: str, query: Mapping[str, str], limit: int) -> tuple[Object, int]:
    """One page of a list with at most ``limit`` objects, fewer where those do not fit, and how many were asked for.

    A Pod may be larger than a MiB: a few hundred of them must not make their whole cluster unreadable.
    """
    while True:
        try:
            return calls.call("GET", path, query={**query, "limit": str(limit)}), limit
        except TooLargeError:
            if limit == 1:
                raise
            limit = max(1, limit // 4)


def _decode(what: str, status: int, raw: bytes) -> Object:
    try:
        decoded = json.loads(raw) if raw else None
    except (ValueError, RecursionError):
        decoded = None
    if not isinstance(decoded, dict):
        if status in (401, 403):
            raise ForbiddenError(f"{what}: {status}")
        raise ClusterUnavailableError(f"{what}: {status} without a Kubernetes object")
    if 200 <= status < 300:
        return decoded
    raise _error(what, status, decoded)


def _error(what: str, status: int, decoded: Object) -> KubernetesError:
    reason = decoded.get("reason")
    is_status = decoded.get("kind") == "Status"
    text = f"{what}: {status} {reason if isinstance(reason, str) and is_status else ''}".rstrip() + _fields(decoded)
    if status in (401, 403):
        return ForbiddenError(text)
    if not is_status:
        return ClusterUnavailableError(f"{text} without a Kubernetes Status")
    if status == 404 and reason == "NotFound":
        return NotFoundError(text)
    if status == 409:
        return ConflictError(text)
    if status in (400, 405, 413, 415, 422):
        return InvalidError(text)
    return ExpiredError(text) if status == _GONE else ClusterUnavailableError(text)


def _fields(decoded: Object) -> str:
    details = decoded.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    if not isinstance(causes, list):
        return ""
    named = [
        f"{cause['field']} {cause.get('reason', '')}".strip()[:200]
        for cause in causes[:_MAX_FIELDS]
        if isinstance(cause, dict) and isinstance(cause.get("field"), str)
    ]
    return f" ({', '.join(named)})" if named else ""
