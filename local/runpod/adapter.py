"""The simulator behind ``requests``, without sockets: unit tests use the real client on it."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import requests
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict

from local.runpod.simulator import Simulator
from local.runpod.wire import DroppedError

BASE_URL = "http://runpod.invalid"


class SimulatorAdapter(BaseAdapter):
    """A transport adapter that calls ``Simulator.handle`` in the calling thread."""

    def __init__(self, simulator: Simulator) -> None:
        super().__init__()
        self._simulator = simulator

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,  # noqa: ARG002  the signature is requests'
        timeout: Any = None,  # noqa: ARG002
        verify: Any = True,  # noqa: ARG002
        cert: Any = None,  # noqa: ARG002
        proxies: Mapping[str, str] | None = None,  # noqa: ARG002
    ) -> requests.Response:
        """One call; a cut connection is ``requests.ConnectionError``."""
        url = urlsplit(request.url or "")
        body = request.body or b""
        raw = body if isinstance(body, bytes) else str(body).encode()
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        try:
            answer = self._simulator.handle(request.method or "GET", url.path, query, request.headers, raw)
        except DroppedError:
            raise requests.ConnectionError("the connection was cut", request=request) from None
        response = requests.Response()
        response.status_code = answer.status
        response.headers = CaseInsensitiveDict(answer.headers)
        response.raw = io.BytesIO(answer.body)
        response.request = request
        response.url = request.url or ""
        return response

    def close(self) -> None:
        """Nothing to close."""


def client_session(simulator: Simulator) -> requests.Session:
    """A session whose every call to ``BASE_URL`` reaches the simulator."""
    session = requests.Session()
    session.trust_env = False
    session.mount(BASE_URL, SimulatorAdapter(simulator))
    return session
