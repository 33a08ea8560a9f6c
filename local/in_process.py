"""A simulator behind ``requests`` without sockets: the real clients run on it in unit tests."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlsplit

import requests
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict


class DroppedError(Exception):
    """The connection is cut: the caller gets no answer."""


class Answer(Protocol):
    """What a simulator's core answers; an iterator for a body that is streamed."""

    @property
    def status(self) -> int:
        """HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Response headers."""
        ...

    @property
    def body(self) -> bytes | Iterator[bytes]:
        """The whole body, or its lines."""
        ...


class Core(Protocol):
    """A simulator without sockets."""

    def handle(
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> Answer:
        """Answer one request; ``DroppedError`` where the connection is cut."""
        ...


class InProcessAdapter(BaseAdapter):
    """A transport adapter that calls a simulator's core in the calling thread."""

    def __init__(self, core: Core) -> None:
        super().__init__()
        self._core = core

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,  # noqa: ARG002 - the signature is requests'
        timeout: Any = None,  # noqa: ARG002
        verify: Any = True,  # noqa: ARG002
        cert: Any = None,  # noqa: ARG002
        proxies: Mapping[str, str] | None = None,  # noqa: ARG002
    ) -> requests.Response:
        """One request; a cut connection is ``requests.ConnectionError``."""
        url = urlsplit(request.url or "")
        body = request.body or b""
        raw = body if isinstance(body, bytes) else str(body).encode()
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        try:
            answer = self._core.handle(request.method or "GET", url.path, query, request.headers, raw)
        except DroppedError:
            raise requests.ConnectionError("the connection was cut", request=request) from None
        response = requests.Response()
        response.status_code = answer.status
        response.headers = CaseInsensitiveDict(answer.headers)
        response.url = request.url or ""
        response.request = request
        response.raw = io.BytesIO(answer.body) if isinstance(answer.body, bytes) else _Stream(answer.body)
        return response

    def close(self) -> None:
        """Nothing to close."""


def session_over(core: Core, base_url: str) -> requests.Session:
    """A session whose calls to ``base_url`` reach the simulator."""
    session = requests.Session()
    session.trust_env = False
    session.mount(base_url, InProcessAdapter(core))
    return session


class _Stream(io.RawIOBase):
    """A body's lines as something readable."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:  # noqa: ARG002 - one line at a time, however much is asked for
        return next(self._lines, b"")
