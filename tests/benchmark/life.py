"""Calls and writes of one Pod's life, of several kinds of lives, counted at the wire."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import boto3
from moto import mock_aws
from nebula.aws import AwsClients
from nebula.providers.simulated import Call

from tests.support.dynamo_calls import count_calls
from tests.support.life_cost import LIVES, CountedWorld, Life
from tests.support.tables import create_tables

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: Lists come once a look, and accounts and credentials are remembered by the providers that are asked over a network.
_ON_INSTANCES = frozenset({Call.PROVISION, Call.TERMINATE, Call.GET, Call.FIND})


@contextmanager
def empty_account() -> Iterator[DynamoDBClient]:
    """A client of an account in memory that has the three tables."""
    with mock_aws():
        client = AwsClients(boto3.session.Session("testing", "testing", region_name="eu-central-1")).dynamodb
        create_tables(client)
        yield client


def run() -> dict[str, Any]:
    """Every life, and a tick in which nothing happens."""
    return {"lives": {name: _life(life) for name, life in LIVES.items()}, **_quiet_ticks()}


def _life(life: Life) -> dict[str, Any]:
    with empty_account() as dynamodb:
        cost = CountedWorld(dynamodb, life).whole_life()
    return {
        "provider_calls": sum(times for call, times in cost.provider.items() if call in _ON_INSTANCES),
        "provider": dict(cost.provider),
        "item_writes": cost.item_writes,
        "items": {f"{action} {table}": times for (table, action), times in cost.items.items()},
        "kubernetes_writes": cost.kubernetes_writes,
        "kubernetes": {f"{verb} {resource}": times for (verb, resource), times in cost.kubernetes.items()},
    }


def _quiet_ticks(ticks: int = 4) -> dict[str, Any]:
    with empty_account() as dynamodb:
        counted = CountedWorld(dynamodb, Life())
        for number in range(3):
            counted.start(f"train-{number}")
        counted.world.minute()
        calls = count_calls(dynamodb)
        for _ in range(ticks):
            counted.world.tick()
    reads = {f"{action} {table}": times / ticks for (table, action), times in calls.operations.items()}
    return {"quiet_tick_item_writes": calls.item_writes, "quiet_tick_reads": reads}
