"""The simulator behind ``requests``, without sockets: unit tests use the real client on it."""

from __future__ import annotations

from local.in_process import AdapterSession, session_over
from local.runpod.simulator import Simulator

BASE_URL = "http://runpod.invalid"


def client_session(simulator: Simulator) -> AdapterSession:
    """A session whose every call to ``BASE_URL`` reaches the simulator."""
    return session_over(simulator, BASE_URL)
