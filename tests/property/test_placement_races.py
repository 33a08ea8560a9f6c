"""Placements at the same time, in generated interleavings: no budget is ever overspent."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial

import boto3
import pytest
from moto import mock_aws
from nebula.aws import AwsClients
from nebula.domain.claim import Phase
from nebula.stores.claims import ClaimStore
from nebula.stores.dynamo_claims import DynamoClaimStore
from nebula.stores.memory_claims import MemoryClaimStore
from nebula.workflows.place import place_pod

from tests.support.interleaving import Interleaver
from tests.support.tables import create_tables
from tests.support.world import CLUSTER, World, pool_object

PRICE = Decimal("2.00")
STEPS = ("get", "budget", "create", "save")


def contest(pods: int, budget: str) -> World:
    """Gated Pods of one H100 at $2.00 each that nobody has placed yet."""
    world = World(pool=pool_object(budgetPerHour=budget))
    for number in range(pods):
        world.create_pod(f"pod-{number}", announce=False)
    return world


def race(world: World, store: ClaimStore, seed: int) -> None:
    """Place every Pod at once on a fresh ledger, in the order of the seed."""
    between = Interleaver(seed)
    world.claims = between.watched(store, STEPS)
    services = world.services("placement")
    actors = []
    for name in [key for key in PODS if world.pod(key) is not None]:
        pod = world.pod(name)
        assert pod is not None
        actors.append(partial(place_pod, services, CLUSTER, "default", name, pod["metadata"]["uid"]))
    between.run(*actors, *actors[:1])


PODS = [f"pod-{number}" for number in range(6)]


def check(world: World, store: ClaimStore, fits: int) -> None:
    live = list(store.live(CLUSTER))
    placed = [claim for claim in live if claim.phase is Phase.PLACED]
    assert len(placed) == fits
    assert store.budget(CLUSTER, "pool").committed_per_hour == PRICE * fits
    for claim in live:
        if claim.phase is not Phase.PLACED:
            assert (claim.phase, claim.reason) == (Phase.PENDING, "budget_exhausted")
            assert claim.wanted_per_hour == PRICE
            assert claim.next_action_at is not None


@pytest.mark.parametrize(("pods", "budget", "fits"), [(4, "4.00", 2), (4, "3.99", 1), (3, "5.50", 2), (2, "1.99", 0)])
def test_no_interleaving_overspends_in_memory(pods: int, budget: str, fits: int) -> None:
    world = contest(pods, budget)
    for seed in range(250):
        store = MemoryClaimStore()
        race(world, store, seed)
        check(world, store, fits)


def test_no_interleaving_overspends_on_dynamodb() -> None:
    session = boto3.session.Session("testing", "testing", region_name="eu-central-1")
    world = contest(3, "4.00")
    for seed in range(100):
        with mock_aws():
            client = AwsClients(session).dynamodb
            create_tables(client)
            store = DynamoClaimStore(client, "claims")
            race(world, store, seed)
            check(world, store, 2)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_thousand_pods_at_once_and_a_budget_for_a_hundred(seed: int) -> None:
    """Ten placements at a time, a thousand in all: at every moment within the budget, in the end exactly full."""
    world = contest(0, "200")
    store, between = MemoryClaimStore(), Interleaver(seed)
    world.claims = between.watched(store, STEPS)
    services = world.services("placement")
    for first in range(0, 1000, 10):
        names = [f"pod-{first + number}" for number in range(10)]
        uids = {name: world.create_pod(name, announce=False)["metadata"]["uid"] for name in names}
        between.run(*(partial(place_pod, services, CLUSTER, "default", name, uids[name]) for name in names))
        assert store.budget(CLUSTER, "pool").committed_per_hour <= PRICE * 100
    check(world, store, 100)
    assert len(list(store.live(CLUSTER))) == 1000


def test_the_interleavings_differ() -> None:
    """Guards the test itself: a scheduler that always runs one actor to its end would prove nothing."""
    orders = set()
    for seed in range(30):
        between, order = Interleaver(seed), list[str]()

        def act(name: str, between: Interleaver = between, order: list[str] = order) -> None:
            for _ in range(3):
                between.pause()
                order.append(name)

        calls: list[Callable[[], object]] = [partial(act, name) for name in "abc"]
        between.run(*calls)
        orders.add("".join(order))
    assert len(orders) > 25
