"""The emulator behind ``requests``, without sockets: unit tests use the real client on it."""

from __future__ import annotations

import requests
from nebula.kubernetes.client import KubernetesClient
from nebula.kubernetes.transport import LIMITS, StaticToken, Transport
from pydantic import SecretStr

from local.in_process import session_over
from local.kubernetes.server import Emulator

SERVER = "http://kubernetes.invalid"


def session(emulator: Emulator) -> requests.Session:
    """A session that reaches only the emulator."""
    return session_over(emulator, SERVER)


def client(emulator: Emulator, name: str = "local", *, token: str | None = None) -> KubernetesClient:
    """The real client over the emulator, without sockets and without waiting between tries."""
    tokens = None if token is None else StaticToken(SecretStr(token))
    transport = Transport(SERVER, tokens, session(emulator), limits=LIMITS, sleep=lambda _: None)
    return KubernetesClient(name, transport)
