"""Queues, their dead letters, and the mappings that read them."""

from __future__ import annotations

import pytest

from tests.support.cloudformation import FUNCTIONS, dead_letter_queues, logical_id, mappings, of_type, properties

READS = {
    "placement": {"PlacementQueue"},
    "provisioning": {"CreateQueue", "ReclaimQueue"},
    "status_polling": {"TickQueue"},
    "credential_retirement": {"RetirementQueue"},
}
TIMEOUTS = {"placement": 30, "provisioning": 90, "status_polling": 60, "credential_retirement": 300}
ALL_MAPPINGS = [(function, queue) for function, queues in READS.items() for queue in sorted(queues)]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_function_reads_its_own_queues_and_no_other(function: str) -> None:
    assert set(mappings(function)) == READS[function]


def test_every_queue_is_read_by_one_function_or_holds_dead_letters() -> None:
    read = [queue for queues in READS.values() for queue in queues]
    assert sorted(read) == sorted(set(of_type("AWS::SQS::Queue")) - dead_letter_queues())


@pytest.mark.parametrize(("function", "queue"), ALL_MAPPINGS)
def test_each_mapping_reports_item_failures_and_bounds_concurrency(function: str, queue: str) -> None:
    mapping = mappings(function)[queue]
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert 2 <= mapping["ScalingConfig"]["MaximumConcurrency"] <= 1000
    assert mapping["BatchSize"] <= 10


@pytest.mark.parametrize("function", FUNCTIONS)
def test_timeouts_are_the_design_and_concurrency_is_never_reserved(function: str) -> None:
    own = properties(FUNCTIONS[function])
    assert own["Timeout"] == TIMEOUTS[function]
    assert "ReservedConcurrentExecutions" not in own


@pytest.mark.parametrize(("function", "queue"), ALL_MAPPINGS)
def test_a_message_stays_hidden_six_times_as_long_as_its_function_may_run(function: str, queue: str) -> None:
    assert properties(queue)["VisibilityTimeout"] == 6 * TIMEOUTS[function]


@pytest.mark.parametrize("queue", sorted({q for queues in READS.values() for q in queues} - {"TickQueue"}))
def test_each_queue_gives_up_after_five_receives_into_dead_letters_of_its_own(queue: str) -> None:
    redrive = properties(queue)["RedrivePolicy"]
    assert redrive["maxReceiveCount"] == 5
    assert logical_id(redrive["deadLetterTargetArn"]) == queue.replace("Queue", "DeadLetters")


def test_the_tick_queue_alone_has_no_dead_letters_and_forgets_after_five_minutes() -> None:
    tick = properties("TickQueue")
    assert "RedrivePolicy" not in tick
    assert tick["MessageRetentionPeriod"] == 300


@pytest.mark.parametrize("queue", sorted(of_type("AWS::SQS::Queue")))
def test_each_queue_is_encrypted(queue: str) -> None:
    assert properties(queue)["SqsManagedSseEnabled"] is True


@pytest.mark.parametrize("queue", sorted(dead_letter_queues()))
def test_dead_letters_are_kept_for_two_weeks(queue: str) -> None:
    assert properties(queue)["MessageRetentionPeriod"] == 14 * 24 * 3600


def test_one_alarm_watches_every_queue_of_dead_letters() -> None:
    metrics = properties("DeadLettersAlarm")["Metrics"]
    watched = {
        logical_id(m["MetricStat"]["Metric"]["Dimensions"][0]["Value"]): m["MetricStat"]
        for m in metrics
        if "MetricStat" in m and m["MetricStat"]["Metric"]["Namespace"] == "AWS/SQS"
    }
    assert set(watched) == dead_letter_queues()
    # Depth, not messages sent: a message moved by redrive is never counted as sent.
    assert {s["Metric"]["MetricName"] for s in watched.values()} == {"ApproximateNumberOfMessagesVisible"}
    assert [m["Id"] for m in metrics if m["ReturnData"]] == ["all"]
