"""A tiny run of the benchmark's engine comes to its end and shows every stage. No time is asserted."""

from __future__ import annotations

import pytest

from tests.benchmark.engine import run
from tests.benchmark.stages import DOWN, UP

pytestmark = [pytest.mark.network, pytest.mark.slow]
PODS = 5


def test_a_tiny_run_shows_every_stage() -> None:
    result = run(PODS)
    for direction, stages in (("up", UP), ("down", DOWN)):
        phase = result[direction]
        assert {line["stage"]: line["pods"] for line in phase["stages"]} == dict.fromkeys(stages, PODS)
        assert set(phase["cpu_ms_per_pod"]) == {"kubernetes emulator", "functions", "forwarder", "observer"}
    assert result["provider_calls"]["provision"] == result["provider_calls"]["terminate"] == PODS
    assert result["failed_messages"] == {}
