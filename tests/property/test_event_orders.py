"""Every order, every event twice, and the delete before the create: one end state."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nebula.domain.claim import Phase
from nebula.events.details import DetailType

from tests.support.world import CLUSTER, World, running


def _end_state(world: World) -> dict[str, Any]:
    """What is left: Pods and how they are, instances per Pod, money held."""
    pods = {name: world.pod(name) for name in ("keep", "drop")}
    return {
        "pods": {name: running(pod) for name, pod in pods.items() if pod is not None},
        "phases": {c.pod_name: c.phase for c in world.claims.live(CLUSTER)},
        "billed": len(world.billed()),
        "money": world.committed(),
    }


def _expected() -> dict[str, Any]:
    world = World()
    world.create_pod("keep")
    world.create_pod("drop")
    world.pump()
    world.tick()
    world.delete_pod("drop")
    world.pump()
    world.run(2)
    return _end_state(world)


def test_the_plain_order_keeps_one_pod_on_one_instance() -> None:
    end = _expected()
    assert end["pods"] == {"keep": True}
    assert end["phases"] == {"keep": Phase.RELEASED}
    assert end["billed"] == 1


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_order_with_every_event_twice_ends_the_same(data: st.DataObject) -> None:
    world = World()
    world.create_pod("keep")
    world.create_pod("drop")
    drop_after = data.draw(st.integers(0, 12), label="deliveries before the delete")
    for number in itertools.count():
        if number == drop_after and world.pod("drop") is not None:
            world.delete_pod("drop")
        bus = world.collect()
        if not bus and number > drop_after:
            break
        if not bus:
            world.tick(pump=False)
            continue
        envelope = bus.pop(data.draw(st.integers(0, len(bus) - 1), label="which"))
        world.deliver(envelope)
        world.deliver(envelope)
        if data.draw(st.booleans(), label="once more, later") and len(bus) < 12:
            bus.append(envelope)
        assert number < 400
    world.run(2)
    assert _end_state(world) == _expected()


@pytest.mark.parametrize("copies", [1, 2])
def test_a_delete_that_overtakes_the_create_buys_nothing(copies: int) -> None:
    world = World()
    world.create_pod("drop", announce=False)
    pod = world.pod("drop")
    assert pod is not None
    world.announce(DetailType.POD_DELETED, pod)
    world.announce(DetailType.POD_GATED, pod)
    world.delete_pod("drop", announce=False)
    world.pump(copies=copies)
    world.run(1)
    assert world.billed() == []
    assert list(world.claims.live(CLUSTER)) == []
    assert world.committed() == 0
