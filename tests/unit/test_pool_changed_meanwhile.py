"""A NodePool that changes while a decision by its spec of before is on its way: who waits hears of it all the same."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from nebula.domain.claim import Phase
from nebula.kubernetes.batch_reads import BatchClusters
from nebula.workflows.place import node_pool_changed, place_pod
from nebula.workflows.services import Services

from local.kubernetes.resources import NODE_POOLS
from tests.support.world import CLUSTER, World, pool_object

POOL = "/apis/nebula.inftyai.com/v1alpha1/nodepools/pool"
SECOND = timedelta(seconds=1)


def of_a_batch(world: World) -> Services:
    """Placement's edges as one batch of it sees them."""
    whole = world.services("placement")
    return replace(whole, clusters=BatchClusters(whole.clusters, whole.clock))


def place(batch: Services, world: World, name: str) -> None:
    pod = world.pod(name)
    assert pod is not None
    place_pod(batch, CLUSTER, "default", name, pod["metadata"]["uid"])
    world.clock.advance(SECOND)


@pytest.fixture
def world() -> World:
    found = World(pool=pool_object(maxPricePerHour="0.01"))
    for name in ("one", "two"):
        found.create_pod(name, announce=False)
    return found


def replace_pool(world: World) -> None:
    world.emulator.handle("DELETE", POOL, {}, {}, b"")
    world.emulator.create(NODE_POOLS, "", pool_object())
    node_pool_changed(world.services("placement"), CLUSTER, "pool")


def test_a_pool_made_after_the_batch_s_first_pod_serves_the_second(world: World) -> None:
    world.emulator.handle("DELETE", POOL, {}, {}, b"")
    batch = of_a_batch(world)
    place(batch, world, "one")
    world.emulator.create(NODE_POOLS, "", pool_object())
    place(batch, world, "two")
    assert world.claim("two").phase is Phase.PLACED


def test_a_decision_by_the_spec_of_before_is_noticed_by_the_next_sweep(world: World) -> None:
    world.create_pod("first", announce=False)
    place(world.services("placement"), world, "first")
    batch = of_a_batch(world)
    place(batch, world, "one")
    replace_pool(world)
    assert world.claim("one").phase is Phase.PLACED
    place(batch, world, "two")
    late = world.claim("two")
    assert (late.phase, late.reason) == (Phase.PENDING, "price_above_maximum")
    # As one that has waited for long: its own timer is far off.
    world.claims.save(late, late.model_copy(update={"next_action_at": world.clock.now() + timedelta(hours=1)}))
    world.minute()
    assert world.claim("two").phase is Phase.RELEASED


def test_of_a_pool_by_which_everybody_was_decided_nothing_is_said_again(world: World) -> None:
    for name in ("one", "two"):
        place(world.services("placement"), world, name)
    world.publisher.take()
    world.minute(pump=False)
    assert [e for e in world.publisher.take() if e["detail-type"] == "NodePool Changed"] == []
