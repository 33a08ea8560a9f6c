"""The local stack's common time divisor."""

from __future__ import annotations

import pytest

from local.scaling import LEASE_MARGIN_SECONDS, MIN_TIMEOUT_SECONDS, Scale


def test_a_divisor_of_one_changes_nothing() -> None:
    scale = Scale(1)
    queue = {"VisibilityTimeout": 540, "MessageRetentionPeriod": 345600, "RedrivePolicy": {"maxReceiveCount": 5}}
    variables = {"NEBULA_LEASE": "PT120S", "NEBULA_TICK_INTERVAL": "PT15S", "OTHER": "PT15S"}
    assert scale.queue(queue) == queue
    assert scale.timeout(90) == 90
    assert scale.environment(variables, 90) == variables


def test_every_timer_is_divided_by_the_same_number() -> None:
    scale = Scale(15)
    assert scale.queue({"VisibilityTimeout": 540, "DelaySeconds": 30}) == {"VisibilityTimeout": 36, "DelaySeconds": 2}
    assert scale.timeout(300) == 20
    assert scale.schedule("rate(1 minute)") == 4
    assert scale.schedule("rate(1 hour)") == 240
    assert scale.environment({"NEBULA_TICK_INTERVAL": "PT15S"}, 8)["NEBULA_TICK_INTERVAL"] == "PT1S"


def test_a_function_keeps_enough_time_to_run_and_its_lease_outlives_it() -> None:
    scale = Scale(60)
    timeout = scale.timeout(90)
    assert timeout == MIN_TIMEOUT_SECONDS
    lease = scale.environment({"NEBULA_LEASE": "PT120S"}, timeout)["NEBULA_LEASE"]
    assert lease == f"PT{timeout + LEASE_MARGIN_SECONDS:g}S"


def test_a_short_timeout_is_not_lengthened() -> None:
    assert Scale(60).timeout(3) == 3


def test_retention_stays_within_what_sqs_accepts() -> None:
    assert Scale(15).queue({"MessageRetentionPeriod": 300}) == {"MessageRetentionPeriod": 60}


def test_the_rest_of_the_environment_is_not_touched() -> None:
    untouched = {"NEBULA_UNUSED_AFTER": "P7D", "NEBULA_EVENT_BUS": "bus"}
    assert Scale(15).environment(untouched, 8) == untouched


@pytest.mark.parametrize("expression", ["cron(0 * * * ? *)", "rate(1 fortnight)", "at(2026-01-01T00:00:00)"])
def test_a_schedule_that_is_no_rate_is_refused_by_name(expression: str) -> None:
    with pytest.raises(ValueError, match="rate"):
        Scale().schedule(expression)


def test_time_cannot_be_stretched() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Scale(0.5)
