"""The emulator behind ``requests``, without sockets: unit tests use the real client on it."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import requests
from nebula.kubernetes.client import KubernetesClient
from nebula.kubernetes.transport import LIMITS, StaticToken, Transport
from pydantic import SecretStr
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict

from local.kubernetes.server import DroppedError, Emulator

SERVER = "http://kubernetes.invalid"


class _Stream(io.RawIOBase):
    """A watch's lines as a readable body."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:  # noqa: ARG002 - one line at a time, however much is asked for
        return next(self._lines, b"")


class EmulatorAdapter(BaseAdapter):
    """A transport adapter that calls ``Emulator.handle``."""

    def __init__(self, emulator: Emulator) -> None:
        super().__init__()
        self._emulator = emulator

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,  # noqa: ARG002 - the signature is requests'
        timeout: Any = None,  # noqa: ARG002
        verify: Any = True,  # noqa: ARG002
        cert: Any = None,  # noqa: ARG002
        proxies: Mapping[str, str] | None = None,  # noqa: ARG002
    ) -> requests.Response:
        """One request, answered in the calling thread; a cut connection is ``requests.ConnectionError``."""
        url = urlsplit(request.url or "")
        body = request.body or b""
        raw = body if isinstance(body, bytes) else str(body).encode()
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        try:
            answer = self._emulator.handle(request.method or "GET", url.path, query, request.headers, raw)
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


def session(emulator: Emulator) -> requests.Session:
    """A session that reaches only the emulator."""
    made = requests.Session()
    made.trust_env = False
    made.mount(SERVER, EmulatorAdapter(emulator))
    return made


def client(emulator: Emulator, name: str = "local", *, token: str | None = None) -> KubernetesClient:
    """The real client over the emulator, without sockets and without waiting between tries."""
    tokens = None if token is None else StaticToken(SecretStr(token))
    transport = Transport(SERVER, tokens, session(emulator), limits=LIMITS, sleep=lambda _: None)
    return KubernetesClient(name, transport)
