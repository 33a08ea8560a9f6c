"""Random Pods, events, faults, crashes and clock steps; when they stop, the invariants hold."""

from __future__ import annotations

from collections import Counter
from typing import Any

import boto3
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from moto import mock_aws
from nebula.aws import AwsClients
from nebula.workflows import observe, vanished

from tests.support.lifecycle_machine import Lifecycle
from tests.support.tables import create_tables, dynamo_stores

#: One for all runs: it keeps the service descriptions, which take longest to load.
SESSION = boto3.session.Session("testing", "testing", region_name="eu-central-1")
#: Ways for a create to fail of which a run must have scripted so many.
MOST_FAULTS = 6
#: What a run of the machine is about, by the names under which it counts.
HAPPENS = {
    "abandoned with an instance",
    "clock back",
    "crash",
    "deleted during a create",
    "edit",
    "event lost",
    "event out of order",
    "event twice",
    "foul weather",
    "failover of an instance that existed",
    "instance ends: delete",
    "instance ends: exit",
    "instance ends: fail",
    "instance ends: interrupt",
    "lease lost under a create",
    "partial list",
    "queueing provider",
    "same name again",
    "stale list",
}

SETTINGS = settings(
    max_examples=10,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


class Counted(Lifecycle):
    """The same, counting for itself."""

    happened = Counter()


class OnDynamo(Lifecycle):
    """The same on DynamoDB's stores. moto's transactions are not atomic, so one call at a time."""

    happened = Counter()
    lives = 0

    def stores(self) -> dict[str, Any]:
        OnDynamo.lives += 1
        self.account = mock_aws()
        self.account.start()
        dynamodb = AwsClients(SESSION).dynamodb
        create_tables(dynamodb)
        return dynamo_stores(dynamodb)

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self.account.stop()


Lifecycle.TestCase.settings = SETTINGS
TestLifecycle = Lifecycle.TestCase


def test_the_same_lives_on_dynamodb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe, "WORKERS", 1)
    fewer = settings(SETTINGS, max_examples=2, stateful_step_count=15)
    run_state_machine_as_test(OnDynamo, settings=fewer)
    assert OnDynamo.lives > 0


def test_the_machine_does_what_it_is_to_test(monkeypatch: pytest.MonkeyPatch) -> None:
    # One thread each: which call a crash meets must be the same whenever a life is lived again.
    monkeypatch.setattr(observe, "WORKERS", 1)
    monkeypatch.setattr(vanished, "_READERS", 1)
    derandomized = settings(SETTINGS, max_examples=60, derandomize=True, database=None, phases=[Phase.generate])
    run_state_machine_as_test(Counted, settings=derandomized)
    did = {what for what, number in Counted.happened.items() if number}
    assert sorted(HAPPENS - did) == []
    assert len({what for what in did if what.startswith("create: ")}) >= MOST_FAULTS
