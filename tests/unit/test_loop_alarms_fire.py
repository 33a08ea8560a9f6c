"""Each alarm of the template can fire: its condition is made, and what is printed is what the alarm watches.

The real telemetry prints CloudWatch's embedded metric format (EMF) on standard output; the lines are read back
and compared with the template's namespace, name and dimensions, and with its threshold.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pytest
from nebula.domain.instance import Mark
from nebula.observability import PowertoolsTelemetry
from nebula.providers.errors import AuthenticationError, ProviderUnavailableError, RequestRefusedError
from nebula.providers.simulated import Call
from nebula.workflows.services import Services

from tests.support.cloudformation import of_type, written
from tests.support.lending import Lending
from tests.support.mischief import force_delete, remark, running_pods
from tests.support.runpod import RunPodWorld, request
from tests.support.world import CLUSTER, INSTALLATION, World, pool_object

STACK = "nebula"
NAMESPACE = f"Nebula/{STACK}"
ALARMS = of_type("AWS::CloudWatch::Alarm")
#: https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html and
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
SENT_BY_AWS = {
    ("AWS/Lambda", "Invocations", ("FunctionName",)),
    ("AWS/Lambda", "Errors", ("FunctionName",)),
    ("AWS/SQS", "ApproximateNumberOfMessagesVisible", ("QueueName",)),
}


@dataclass(frozen=True)
class Sent:
    """One figure as CloudWatch reads it from a printed line."""

    namespace: str
    name: str
    dimensions: tuple[tuple[str, str], ...]
    value: float


class SpeakingWorld(World):
    """A world that prints its figures as the functions do."""

    def services(self, function: str) -> Services:
        return replace(super().services(function), telemetry=PowertoolsTelemetry(function, NAMESPACE))


def printed(text: str) -> list[Sent]:
    """Every figure in what was printed."""
    found = []
    for line in text.splitlines():
        emf = json.loads(line) if line.startswith("{") else {}
        for directive in emf.get("_aws", {}).get("CloudWatchMetrics", []):
            for names in directive["Dimensions"]:
                dimensions = tuple(sorted((name, emf[name]) for name in names))
                found += [
                    Sent(directive["Namespace"], one["Name"], dimensions, _value(emf[one["Name"]]))
                    for one in directive["Metrics"]
                ]
    return found


def _value(sent: Any) -> float:
    return float(sent[0] if isinstance(sent, list) else sent)


def watched(alarm: dict[str, Any]) -> list[tuple[str, str, tuple[tuple[str, Any], ...]]]:
    """What an alarm watches: namespace, name and dimensions, the stack's name filled in."""
    metrics = [m["MetricStat"]["Metric"] for m in alarm.get("Metrics", ()) if "MetricStat" in m] or [alarm]
    return [
        (
            _text(metric["Namespace"]),
            metric["MetricName"],
            tuple(sorted((d["Name"], d["Value"]) for d in metric["Dimensions"])),
        )
        for metric in metrics
    ]


def _text(value: Any) -> str:
    return value["Fn::Sub"].replace("${AWS::StackName}", STACK) if isinstance(value, dict) else str(value)


def _threshold(alarm: dict[str, Any]) -> float:
    wanted = alarm["Threshold"]
    return float(written()["Parameters"][wanted["Ref"]]["Default"] if isinstance(wanted, dict) else wanted)


def a_pod_waits() -> None:
    world = SpeakingWorld()
    world.simulated.market.limit(0)
    world.create_pod()
    world.pump()
    world.run(22)


def a_delete_is_not_accepted() -> None:
    world = SpeakingWorld()
    world.create_pod()
    world.pump()
    world.simulated.script.fail(Call.TERMINATE, ProviderUnavailableError("cut"), times=10_000)
    world.delete_pod()
    world.pump()
    world.run(20)


def nobody_binds_the_pod() -> None:
    world = SpeakingWorld()
    world.emulator.scheduler = None
    world.create_pod()
    world.pump()
    world.run(4)


def an_instance_has_no_claim() -> None:
    world = SpeakingWorld()
    copy = world.simulated.console.add_foreign()
    remark(world, copy, mark=Mark(installation=INSTALLATION, claim_id="f" * 32, attempt=1))
    for _ in range(16):
        world.minute(terminate=False)


def every_pod_vanishes() -> None:
    world = SpeakingWorld()
    force_delete(world, *running_pods(world, 5))
    world.run(4)


def a_cluster_is_not_configured() -> None:
    world = SpeakingWorld()
    running_pods(world, 1)
    world.minute()
    world.clusters._apis.pop(CLUSTER)
    world.run(4)


def a_list_breaks_off() -> None:
    world = SpeakingWorld()
    running_pods(world, 1)
    world.simulated.break_listing(shown=1)
    world.run(4)


def the_key_is_refused() -> None:
    world = SpeakingWorld()
    world.simulated.script.fail(Call.PROVISION, AuthenticationError("bad key"))
    world.create_pod()
    world.pump()
    world.run(1)


def a_provider_bills_more_than_the_budget() -> None:
    world = SpeakingWorld(pool=pool_object(budgetPerHour="10.00"))
    running_pods(world, 1)
    machine = world.simulated.console.owned()[0]
    machine.rate = Decimal("99.00")
    machine.changed()
    world.run(6)


def a_credential_cannot_be_taken_back() -> None:
    world = Lending()
    world.put_secret("pw", name="s")
    world.end(world.start("pod", "s"))
    world.clock.advance(timedelta(days=7))
    world.provider.script.fail(Call.REGISTRY_DELETE, ProviderUnavailableError("cut"), times=10_000)
    world.telemetry = PowertoolsTelemetry("credential_retirement", NAMESPACE)  # type: ignore[assignment]
    for _ in range(2):
        world.retire()
        world.clock.advance(timedelta(hours=1))


def a_claim_cannot_be_judged() -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("a bug")

    world = SpeakingWorld()
    world.create_pod()
    world.pump()
    with patch("nebula.workflows.observe.settle", fails):
        world.minute(pump=False)


def runpod_calls_our_request_malformed() -> None:
    world = RunPodWorld(telemetry=PowertoolsTelemetry("provisioning", NAMESPACE))  # type: ignore[arg-type]
    world.fail_create(422, "request validation failed: $.image: missing property")
    with pytest.raises(RequestRefusedError, match="422"):
        world.provider.provision(request())


CONDITIONS: list[tuple[str, Callable[[], None]]] = [
    ("GatedPodAlarm", a_pod_waits),
    ("ClaimsOverdueAlarm", a_delete_is_not_accepted),
    ("PodsUnboundAlarm", nobody_binds_the_pod),
    ("OrphansAlarm", an_instance_has_no_claim),
    ("SystemsUnknownAlarm", every_pod_vanishes),
    ("SystemsUnknownAlarm", a_cluster_is_not_configured),
    ("SystemsUnknownAlarm", a_list_breaks_off),
    ("ProvidersBlockedAlarm", the_key_is_refused),
    ("SpendOverBudgetAlarm", a_provider_bills_more_than_the_budget),
    ("RetirementsFailedAlarm", a_credential_cannot_be_taken_back),
    ("DeadLettersAlarm", a_claim_cannot_be_judged),
    ("DeadLettersAlarm", runpod_calls_our_request_malformed),
]


@pytest.mark.parametrize(("name", "condition"), CONDITIONS, ids=lambda value: getattr(value, "__name__", value))
def test_the_condition_makes_the_alarm_fire(
    name: str, condition: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    alarm = ALARMS[name]
    condition()
    watches, threshold = watched(alarm), _threshold(alarm)
    points = [one for one in printed(capsys.readouterr().out) if (one.namespace, one.name, one.dimensions) in watches]
    over = [one for one in points if one.value > threshold]
    assert len(over) >= alarm.get("DatapointsToAlarm", alarm["EvaluationPeriods"]), points


def test_every_alarm_on_figures_of_ours_has_a_condition_here() -> None:
    ours = {name for name, alarm in ALARMS.items() if any(ns == NAMESPACE for ns, _, _ in watched(alarm))}
    assert ours == {name for name, _ in CONDITIONS}


@pytest.mark.parametrize("name", ["StatusLoopAlarm", "DeadLettersAlarm"])
def test_what_aws_sends_is_watched_under_its_own_names(name: str) -> None:
    theirs = [one for one in watched(ALARMS[name]) if one[0] != NAMESPACE]
    assert theirs
    assert {(ns, metric, tuple(key for key, _ in dims)) for ns, metric, dims in theirs} <= SENT_BY_AWS


def test_the_status_loop_is_called_dead_without_runs_or_with_most_runs_failing() -> None:
    expression = next(m["Expression"] for m in ALARMS["StatusLoopAlarm"]["Metrics"] if "Expression" in m)
    condition = expression.removeprefix("IF(").removesuffix(", 1, 0)").replace("OR", "or")

    def dead(invocations: int, errors: int) -> bool:
        return bool(eval(condition, {}, {"invocations": invocations, "errors": errors}))

    assert [dead(0, 0), dead(5, 3), dead(35, 5)] == [True, True, True]
    assert [dead(5, 0), dead(35, 2), dead(1, 0)] == [False, False, False]


def test_a_healthy_installation_prints_no_figure_that_an_alarm_watches(capsys: pytest.CaptureFixture[str]) -> None:
    world = SpeakingWorld()
    running_pods(world, 2)
    world.run(3)
    names = {metric for alarm in ALARMS.values() for _, metric, _ in watched(alarm)}
    assert not [one for one in printed(capsys.readouterr().out) if one.name in names]
