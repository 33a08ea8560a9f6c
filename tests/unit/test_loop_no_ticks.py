"""A tick queue that takes nothing: Pods are placed and kept true by the schedule alone."""

from __future__ import annotations

from typing import Any

import pytest
from nebula.events.publisher import PublishError

from tests.support.mischief import said
from tests.support.world import World, running


def test_pods_are_placed_run_and_end_without_a_tick_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()

    def refused(_delays: Any) -> None:
        raise PublishError("SendMessageBatch failed: ClientError")

    monkeypatch.setattr(world.ticks, "enqueue", refused)
    world.create_pod()
    world.pump()
    world.run(2)
    assert running(world.pod())
    assert said(world, "ticks not enqueued")
    assert world.telemetry.total("EventsUnsent") > 0
    world.delete_pod()
    world.pump()
    world.run(2)
    assert world.pod() is None
    assert world.billed() == []
