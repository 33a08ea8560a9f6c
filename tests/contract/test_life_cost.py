"""Budgets that are counts (docs/performance.md): what a life and a quiet tick may cost, over DynamoDB's own stores."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from nebula.providers.simulated import Call

from tests.support.dynamo_calls import count_calls
from tests.support.life_cost import LIVES, CountedWorld, Life
from tests.support.world import running

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MOST_ITEM_WRITES = 12
MOST_KUBERNETES_WRITES = 8


@pytest.mark.parametrize("name", LIVES)
def test_a_life_stays_within_its_budget(dynamodb: DynamoDBClient, name: str) -> None:
    cost = CountedWorld(dynamodb, LIVES[name]).whole_life()
    assert (cost.provider[Call.PROVISION], cost.provider[Call.TERMINATE]) == (1, 1)
    assert cost.provider[Call.GET] == cost.provider[Call.FIND] == 0, "an undisturbed life is seen in lists only"
    assert cost.item_writes <= MOST_ITEM_WRITES, cost.items
    assert cost.kubernetes_writes <= MOST_KUBERNETES_WRITES, cost.kubernetes


def test_a_first_private_image_adds_the_row_of_its_credential(dynamodb: DynamoDBClient) -> None:
    counted = CountedWorld(dynamodb, LIVES["has a private image"])
    calls = count_calls(dynamodb)
    counted.start("first")
    assert calls.operations["credentials", "PutItem"] == 2
    counted.start("second")
    assert calls.operations["credentials", "PutItem"] == 3, "a credential that is lent already is only touched"


def test_a_quiet_tick_writes_nothing_but_the_heartbeat(dynamodb: DynamoDBClient) -> None:
    counted = CountedWorld(dynamodb, Life())
    for number in range(3):
        counted.start(f"train-{number}")
    counted.world.minute()
    calls = count_calls(dynamodb)
    published, before = len(counted.world.publisher.events), counted.kubernetes_writes()
    for _ in range(4):
        counted.world.tick()
    assert calls.item_writes == 0, calls.operations
    assert len(counted.world.publisher.events) == published
    beaten = counted.kubernetes_writes() - before
    assert {resource for _, resource in beaten} == {"leases", "nodes/status"}
    assert beaten["patch", "leases"] == 4
    assert all(running(counted.world.pod(f"train-{number}")) for number in range(3))


@pytest.mark.parametrize("pods", [1, 4])
def test_a_quiet_minute_costs_the_same_reads_whatever_runs_and_writes_nothing(
    dynamodb: DynamoDBClient, pods: int
) -> None:
    counted = CountedWorld(dynamodb, Life())
    for number in range(pods):
        counted.start(f"train-{number}")
    counted.world.run(2)
    calls, asked = count_calls(dynamodb), counted.kubernetes_calls()
    counted.world.minute()
    assert calls.item_writes == 0, calls.operations
    assert calls.operations["claims", "GetItem"] <= 1, "the budget's counter, and no claim one by one"
    reads = counted.kubernetes_calls() - asked
    assert (reads["list", "pods"], reads["get", "pods"]) == (4, 0), "one list a look, no Pod one by one"


@pytest.mark.parametrize("pods", [1, 25])
def test_a_look_lists_each_provider_once_whatever_the_number_of_claims(dynamodb: DynamoDBClient, pods: int) -> None:
    counted = CountedWorld(dynamodb, Life())
    for number in range(pods):
        counted.world.create_pod(f"train-{number}")
    counted.world.pump()
    counted.world.tick()
    counts = counted.provider.script.counts
    before = counts[Call.LIST]
    counted.world.tick(after=timedelta(seconds=15))
    assert counts[Call.LIST] == before + 1
    assert counts[Call.GET] == counts[Call.FIND] == 0
