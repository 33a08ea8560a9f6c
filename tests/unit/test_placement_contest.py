"""Many Pods, little budget, scarce stock: who gets what, and what is never lost."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from nebula.clock import ManualClock
from nebula.domain.claim import Phase
from nebula.events.details import DetailType
from nebula.providers.errors import NoCapacityError
from nebula.providers.simulated import SimulatedProvider
from nebula.providers.simulated.script import Call
from nebula.workflows.place import place_pod

from local.kubernetes.resources import NODE_POOLS
from tests.support.tripwire import CrashError, Tripwire
from tests.support.world import CLUSTER, START, World, pool_object

PRICE = Decimal("2.00")


def phases(world: World) -> Counter[str]:
    return Counter(str(claim.phase) for claim in world.claims.live(CLUSTER))


def test_a_thousand_pods_and_a_budget_for_a_hundred() -> None:
    world = World(pool=pool_object(budgetPerHour="200"))
    services = world.services("placement")
    for number in range(1000):
        pod = world.create_pod(f"pod-{number}", announce=False)
        place_pod(services, CLUSTER, "default", f"pod-{number}", pod["metadata"]["uid"])
    assert phases(world) == {"Placed": 100, "Pending": 900}
    assert world.committed() == PRICE * 100
    waiting = [c for c in world.claims.live(CLUSTER) if c.phase is Phase.PENDING]
    assert {(c.reason, c.wanted_per_hour) for c in waiting} == {("budget_exhausted", PRICE)}


def test_freed_budget_goes_to_the_oldest_within_two_ticks() -> None:
    world = World(pool=pool_object(budgetPerHour="6"))
    for number in range(8):
        world.create_pod(f"pod-{number}")
        world.pump()
        world.clock.advance(timedelta(seconds=1))
    assert phases(world) == {"Released": 3, "Pending": 5}
    world.tick()
    for name in ("pod-0", "pod-1"):
        world.delete_pod(name)
    world.tick()
    world.tick()
    assert [world.claim(f"pod-{n}").phase for n in range(2, 8)] == [
        Phase.RELEASED,
        Phase.RELEASED,
        Phase.RELEASED,
        Phase.PENDING,
        Phase.PENDING,
        Phase.PENDING,
    ]
    assert world.committed() == PRICE * 3


def test_a_raised_budget_wakes_who_fits_and_a_tick_without_news_writes_nothing() -> None:
    world = World(pool=pool_object(budgetPerHour="2"))
    for number in range(3):
        world.create_pod(f"pod-{number}")
        world.pump()
    world.tick()
    before = world.claims.writes
    world.tick(after=timedelta(seconds=11))
    assert world.claims.writes == before
    patched = world.api.get_node_pool("pool")
    assert patched is not None
    world.emulator.handle("DELETE", "/apis/nebula.inftyai.com/v1alpha1/nodepools/pool", {}, {}, b"")
    world.emulator.create(NODE_POOLS, "", pool_object(budgetPerHour="4"))
    world.queue.append(
        {
            "source": "nebula.kubernetes",
            "detail-type": str(DetailType.NODEPOOL_CHANGED),
            "detail": {"cluster": CLUSTER, "name": "pool"},
        }
    )
    world.pump()
    assert phases(world) == {"Released": 2, "Pending": 1}


def three_providers() -> tuple[World, dict[str, SimulatedProvider]]:
    """Two NodePools: ``pool`` over all three in order, ``other`` over the last two."""
    clock = ManualClock(START)
    providers = {name: SimulatedProvider(clock, name=name) for name in ("one", "two", "three")}
    world = World(*providers.values(), clock=clock)
    other: dict[str, Any] = pool_object("two", "three")
    world.emulator.create(NODE_POOLS, "", {**other, "metadata": {"name": "other"}})
    return world, providers


def placed_on(world: World, name: str) -> str:
    candidate = world.claim(name).candidate
    return candidate.provider if candidate is not None else "nowhere"


def test_two_pools_over_three_providers_converge_around_shortages() -> None:
    world, providers = three_providers()
    providers["one"].script.fail(Call.PROVISION, NoCapacityError("none left", code="sold-out"), times=100)
    providers["two"].script.fail(Call.PROVISION, NoCapacityError("none left", code="sold-out"), times=100)
    for number in range(4):
        world.create_pod(f"a-{number}")
        world.pump()
        world.create_pod(f"b-{number}", labels={"nebula.inftyai.com/nodepool": "other"})
        world.pump()
    assert {placed_on(world, f"{pool}-{n}") for pool in "ab" for n in range(4)} == {"three"}
    tries = {name: provider.script.counts[Call.PROVISION] for name, provider in providers.items()}
    assert tries == {"one": 1, "two": 1, "three": 8}, "one refusal keeps every other Pod away"

    for provider in providers.values():
        provider.script.heal()
    world.clock.advance(timedelta(seconds=31))
    world.create_pod("a-late")
    world.create_pod("b-late", labels={"nebula.inftyai.com/nodepool": "other"})
    world.pump()
    assert (placed_on(world, "a-late"), placed_on(world, "b-late")) == ("one", "two")


@pytest.mark.parametrize("after", [False, True])
def test_a_process_killed_mid_way_loses_no_block(after: bool) -> None:
    """The block is in the ledger before the claim moves: whoever finds the claim finds the block too."""
    world, providers = three_providers()
    providers["one"].script.fail(Call.PROVISION, NoCapacityError("none left"), times=100)
    wire = Tripwire()
    wire.watch("blocks", world.blocks, ("put",))
    wire.arm(1, after=after)
    world.create_pod("first")
    with pytest.raises(CrashError):
        world.pump()
    wire.disarm()
    world.queue.clear()
    assert len(world.blocks.active("one", world.clock.now())) == int(after)

    world.create_pod("second")
    world.pump()
    assert placed_on(world, "second") == "two"
    assert len(world.blocks.active("one", world.clock.now())) == 1
    for _ in range(6):
        world.minute()
    assert {placed_on(world, "first"), placed_on(world, "second")} == {"two"}
    assert len(world.billed(providers["two"])) == 2
    assert world.billed(providers["one"]) == []


def test_a_pool_with_too_little_for_the_oldest_serves_a_smaller_one() -> None:
    world = World(pool=pool_object(budgetPerHour="5"))
    world.create_pod("holder")
    world.pump()
    large = {"limits": {"nvidia.com/gpu": "4"}, "requests": {"nvidia.com/gpu": "4"}}
    world.create_pod("large", containers=[{"name": "main", "image": "x", "resources": large}])
    world.create_pod("small")
    world.create_pod("late")
    world.pump()
    assert world.claim("large").reason == "budget_exhausted"
    assert world.claim("large").wanted_per_hour == Decimal("8.00")
    assert world.claim("small").phase is Phase.RELEASED
    world.delete_pod("small")
    world.tick()
    world.tick()
    assert world.claim("late").phase is Phase.RELEASED
    assert world.claim("large").phase is Phase.PENDING
