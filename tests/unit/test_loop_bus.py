"""A bus that refuses entries stops no work: an event is a hint, the ledger is the truth."""

from __future__ import annotations

import pytest
from nebula.domain.claim import Phase
from nebula.events.publisher import PublishError
from nebula.workflows import poll

from tests.support.mischief import claims, running_pods, said
from tests.support.world import World, running


def test_a_scheduled_run_goes_on_to_its_end_when_the_bus_refuses() -> None:
    world = World()
    running_pods(world, 2)
    world.delete_pod("train-0", announce=False)
    world.create_pod("late", announce=False)
    world.publisher.fail_next(10_000)
    world.run(2)
    assert said(world, "swept")
    assert world.telemetry.total("EventsUnsent") > 0
    assert claims(world)[0].phase is Phase.RELEASED or len(claims(world)) == 1


def test_the_status_of_pods_is_written_although_nothing_can_be_announced() -> None:
    world = World()
    world.create_pod()
    world.pump()
    world.publisher.fail_next(10_000)
    world.tick()
    assert running(world.pod())


def test_what_was_not_announced_is_announced_a_minute_later() -> None:
    world = World()
    world.create_pod(announce=False)
    world.clock.advance(poll.STALE_AFTER)
    world.publisher.fail_next(10_000)
    world.minute()
    assert claims(world) == []
    world.publisher.fail_next(0)
    world.run(2)
    assert running(world.pod())


def test_a_claim_that_moved_is_not_called_a_defect_because_the_bus_refused() -> None:
    world = World()
    running_pods(world, 1)
    world.simulated.console.delete(world.billed()[0])
    world.publisher.fail_next(10_000)
    world.run(2)
    assert world.telemetry.total("Defects") == 0
    assert world.billed() == []
    assert claims(world) == []


def test_a_queue_that_takes_no_ticks_stops_no_scheduled_run(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.create_pod()
    world.pump()

    def refuse(_delays: object) -> None:
        raise PublishError("SendMessageBatch failed: AccessDenied")

    monkeypatch.setattr(world.ticks, "enqueue", refuse)
    world.minute()
    assert running(world.pod())
    assert said(world, "ticks not enqueued")
