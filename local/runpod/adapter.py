"""The simulator behind ``requests``, without sockets: unit tests use the real client on it."""

from __future__ import annotations

import requests

from local.in_process import session_over
from local.runpod.simulator import Simulator

BASE_URL = "http://runpod.invalid"


def client_session(simulator: Simulator) -> requests.Session:
    """A session whose every call to ``BASE_URL`` reaches the simulator."""
    return session_over(simulator, BASE_URL)
