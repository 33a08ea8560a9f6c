"""What holds for every RunPod call of every test, whatever the test is about.

Each request that the product's client sends must be one of the OpenAPI document's, and a create may
publish only the ports that its test names as opened.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from local.runpod import Simulator
from local.runpod.state import Recorded
from tests.support.runpod_contract import violations

CLIENT = "nebula-serverless"


class Guard:
    """Collects what is wrong. A test adds the ports that it opens to ``opened``, as ``8080/http``."""

    def __init__(self) -> None:
        self.opened: set[str] = set()
        self.problems: list[str] = []
        self.calls = 0

    def observe(self, call: Recorded) -> None:
        """Judge one call."""
        if call.agent != CLIENT:
            return
        self.calls += 1
        self.problems += violations(call)
        if (call.method, call.path) == ("POST", "/v2/pods"):
            published = set(json.loads(call.body).get("ports", ()))
            self.problems += [f"port {port} was published, nobody opened it" for port in published - self.opened]


@pytest.fixture(autouse=True)
def runpod_guard() -> Iterator[Guard]:
    """Watch every simulator of the process for the length of a test."""
    guard = Guard()
    Simulator.observers.append(guard.observe)
    yield guard
    Simulator.observers.remove(guard.observe)
    assert not guard.problems
