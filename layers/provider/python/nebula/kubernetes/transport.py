"""HTTP to one API server: bounded, timed, retried where that is safe, and silent about what it carried.

An answer that does not look like a Kubernetes answer is never taken for absence: a proxy's or another
service's 404 raises ``ClusterUnavailableError``, only a ``Status`` with reason ``NotFound`` is a 404.
Error texts hold the call and the server's reason and field names, never its message: a 422 quotes the
object, and with it environment values.
"""

from __future__ import annotations

import json
import random
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import requests
from pydantic import SecretStr
from requests.adapters import HTTPAdapter

from nebula.kubernetes.api import (
    ClusterUnavailableError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    KubernetesError,
    NotFoundError,
    Object,
)

MAX_BODY_BYTES = 32 * 1024 * 1024
_MAX_ERROR_BYTES = 64 * 1024
_CHUNK_BYTES = 256 * 1024
_MAX_FIELDS = 5
_BACKOFF_SECONDS = 0.2
_MAX_WAIT_SECONDS = 2.0
_GONE = 410
_RETRYABLE = frozenset({429, 500, 502, 503, 504})


class ExpiredError(ClusterUnavailableError):
    """410: a continue token or a resourceVersion is older than the server's history."""


@dataclass(frozen=True)
class Limits:
    """How long and how often one call may try. Seconds; ``tries`` counts the first one and holds for reads only."""

    connect: float = 3.0
    read: float = 10.0
    total: float = 25.0
    tries: int = 3


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


class ClusterAuthorityAdapter(HTTPAdapter):
    """Trusts exactly one certificate authority, held in memory: no file, no public roots beside it."""

    def __init__(self, ca_pem: str, *, pool_size: int = 16) -> None:
        self._context = ssl.create_default_context(cadata=ca_pem)
        super().__init__(pool_connections=2, pool_maxsize=pool_size)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> Any:
        """Give every pool our context."""
        return super().init_poolmanager(*args, ssl_context=self._context, **kwargs)

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:  # noqa: ARG002
        """Keep requests from adding its bundle of public roots to the context."""
        conn.cert_reqs = "CERT_REQUIRED"


def new_session(ca_pem: str | None = None, *, pool_size: int = 16) -> requests.Session:
    """A session without environment: no ``.netrc`` (it would replace our token), no proxies.

    Raises ``ssl.SSLError`` when ``ca_pem`` is no certificate.
    """
    session = requests.Session()
    session.trust_env = False
    session.mount("http://", HTTPAdapter(pool_connections=2, pool_maxsize=pool_size))
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
        limits: Limits | None = None,
        max_body_bytes: int = MAX_BODY_BYTES,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._server = server.rstrip("/")
        self._tokens = tokens
        self._session = session
        self._limits = limits or Limits()
        self._max_body_bytes = max_body_bytes
        self._sleep = sleep

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> Object:
        """One call. Only GET is tried again; a 401 is answered once with a renewed token, whatever the verb."""
        what = f"{method} {path}"
        payload = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        tries = self._limits.tries if method == "GET" else 1
        deadline = time.monotonic() + self._limits.total
        renewed = False
        attempt = 1
        while True:
            try:
                status, headers, raw = self._send(method, path, query, payload, content_type, deadline)
            except requests.RequestException as error:
                if attempt >= tries or not self._pause(attempt, None, deadline):
                    raise ClusterUnavailableError(f"{what}: {type(error).__name__}") from None
                attempt += 1
                continue
            if status == 401 and not renewed and self._tokens is not None and self._tokens.renew():
                renewed = True
                continue
            retry_after = headers.get("Retry-After")
            if status in _RETRYABLE and attempt < tries and self._pause(attempt, retry_after, deadline):
                attempt += 1
                continue
            return _decode(what, status, raw)

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        payload: bytes | None,
        content_type: str,
        deadline: float,
    ) -> tuple[int, Mapping[str, str], bytes]:
        headers = {"Accept": "application/json", "User-Agent": "nebula-serverless"}
        if payload is not None:
            headers["Content-Type"] = content_type
        if self._tokens is not None:
            headers["Authorization"] = f"Bearer {self._tokens.token().get_secret_value()}"
        with self._session.request(
            method,
            self._server + path,
            params=query,
            data=payload,
            headers=headers,
            timeout=(self._limits.connect, self._limits.read),
            allow_redirects=False,
            stream=True,
        ) as response:
            raw = self._read(response, deadline)
            return response.status_code, response.headers, raw

    def _read(self, response: requests.Response, deadline: float) -> bytes:
        limit = self._max_body_bytes if response.ok else _MAX_ERROR_BYTES
        chunks = []
        size = 0
        for chunk in response.iter_content(_CHUNK_BYTES):
            size += len(chunk)
            if size > limit:
                raise ClusterUnavailableError(f"answer of more than {limit} bytes")
            if time.monotonic() > deadline:
                raise requests.Timeout
            chunks.append(chunk)
        return b"".join(chunks)

    def _pause(self, attempt: int, retry_after: str | None, deadline: float) -> bool:
        """Wait before the next try; False when the server asks for more than is left or allowed."""
        wait = _BACKOFF_SECONDS * 2 ** (attempt - 1) * random.uniform(0.5, 1.0)  # noqa: S311 - spread, not secrecy
        if retry_after is not None:
            wait = max(wait, float(retry_after)) if retry_after.isascii() and retry_after.isdigit() else wait
        if wait > _MAX_WAIT_SECONDS or time.monotonic() + wait > deadline:
            return False
        self._sleep(wait)
        return True


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
