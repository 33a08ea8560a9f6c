"""No event ever leaves the cluster: the sweep finds everything within a minute or two."""

from __future__ import annotations

import json
from datetime import timedelta

from local.kubernetes.resources import NODE_POOLS
from tests.support.world import World, pool_object, running


def test_a_new_pod_runs_within_a_minute_and_is_ended_within_another_two() -> None:
    world = World()
    world.create_pod(announce=False)
    world.minute()
    world.tick()
    assert running(world.pod())
    world.delete_pod(announce=False)
    world.run(2)
    assert world.pod() is None
    assert world.billed() == []


def test_a_pod_made_by_an_api_server_whose_clock_is_ahead_is_found_all_the_same() -> None:
    world = World()
    world.clock.advance(timedelta(hours=1))
    world.create_pod(announce=False)
    world.clock.advance(timedelta(hours=-1))
    world.run(2)
    assert running(world.pod())


def test_a_gated_pod_that_vanished_without_a_trace_gives_its_machine_back() -> None:
    world = World()
    world.create_pod(announce=False)
    released = []

    def hold(method: str, path: str) -> None:
        if method == "PATCH" and path.endswith("/pods/train"):
            released.append(path)
            world.emulator.handle("DELETE", path, {}, {})

    world.emulator.faults.append(hold)
    world.run(3)
    assert released
    assert world.pod() is None
    assert world.billed() == []


def test_a_changed_node_pool_is_noticed_by_those_that_wait_for_it() -> None:
    world = World(pool=pool_object(maxPricePerHour="0.01"))
    world.create_pod(announce=False)
    world.run(1)
    assert not running(world.pod())
    body = json.dumps({"spec": {"maxPricePerHour": "10"}}).encode()
    headers = {"Content-Type": "application/merge-patch+json"}
    world.emulator.handle("PATCH", "/apis/nebula.inftyai.com/v1alpha1/nodepools/pool", {}, headers, body)
    world.run(6)
    assert running(world.pod())


def test_a_node_pool_that_comes_late_is_found() -> None:
    world = World()
    world.emulator.handle("DELETE", "/apis/nebula.inftyai.com/v1alpha1/nodepools/pool", {}, {})
    world.create_pod(announce=False)
    world.run(1)
    assert world.billed() == []
    world.emulator.create(NODE_POOLS, "", pool_object("simulated"))
    world.run(6)
    assert running(world.pod())
