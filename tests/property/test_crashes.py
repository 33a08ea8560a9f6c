"""A crash between any two outside calls of a Pod's life, enumerated: the end state is the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from nebula.domain.claim import Phase

from tests.support.tripwire import CrashError, Tripwire, wired
from tests.support.world import World, running

Step = Callable[[World], object]


def _until_running(world: World) -> None:
    world.pump()
    world.tick()


def _until_gone(world: World) -> None:
    world.pump()
    world.tick()
    world.tick()


def _survives(world: World, wire: Tripwire, step: Step, *, redelivered: bool) -> None:
    """Run a step that may crash; the bus delivers the event again, or has lost all it held."""
    try:
        step(world)
    except CrashError:
        if not redelivered:
            world.collect()
            world.queue.clear()
    wire.disarm()
    world.pump()


def _calls(step_number: int) -> int:
    """How many outside calls a step makes when nothing goes wrong."""
    world = World()
    wire = wired(world)
    world.create_pod()
    _until_running(world)
    first = len(wire.log)
    if step_number == 0:
        return first
    world.delete_pod()
    _until_gone(world)
    return len(wire.log) - first


CREATING = [(n, after) for n in range(1, _calls(0) + 1) for after in (False, True)]
DELETING = [(n, after) for n in range(1, _calls(1) + 1) for after in (False, True)]


@pytest.mark.parametrize(("number", "after"), CREATING)
@pytest.mark.parametrize("redelivered", [True, False])
def test_a_crash_on_the_way_up_ends_in_one_running_instance(number: int, after: bool, redelivered: bool) -> None:
    world = World()
    wire = wired(world)
    world.create_pod()
    wire.arm(number, after=after)
    _survives(world, wire, _until_running, redelivered=redelivered)
    world.run(6)

    assert world.claim().phase is Phase.RELEASED, (wire.log[-1], world.claim(), world.telemetry.lines[-5:])
    assert running(world.pod())
    assert world.billed() == [world.claim().instance_id]
    assert world.committed() == world.claim().committed_per_hour


@pytest.mark.parametrize(("number", "after"), DELETING)
@pytest.mark.parametrize("redelivered", [True, False])
def test_a_crash_on_the_way_down_leaves_nothing(number: int, after: bool, redelivered: bool) -> None:
    world = World()
    wire = wired(world)
    world.create_pod()
    _until_running(world)
    world.delete_pod()
    wire.arm(number, after=after)
    _survives(world, wire, _until_gone, redelivered=redelivered)
    world.run(6)

    assert world.pod() is None
    assert world.billed() == []
    assert world.committed() == 0
    assert list(world.claims.live("test")) == []


@pytest.mark.parametrize(("number", "after"), CREATING)
def test_a_pod_deleted_after_a_crash_on_the_way_up_leaves_nothing(number: int, after: bool) -> None:
    world = World()
    wire = wired(world)
    world.create_pod()
    wire.arm(number, after=after)
    _survives(world, wire, _until_running, redelivered=False)
    world.delete_pod()
    world.pump()
    world.run(8)

    assert world.billed() == []
    assert world.committed() == 0
    assert list(world.claims.live("test")) == []
