"""What an installation costs in a month in which nothing happens: no claims, one cluster, one provider.

Counted: calls, log bytes, metrics and messages of idle runs. Measured: the processor time of our own code in one.
Assumed, and said so: how long an answer takes to come, and what Lambda does with half a gigabyte's share of a
processor. Multiplied by the dated prices of ``prices.py``.
"""

from __future__ import annotations

import io
import time
from collections.abc import Mapping
from contextlib import redirect_stdout
from datetime import timedelta
from decimal import Decimal
from typing import Any

from nebula.credentials.policy import policies
from nebula.observability import PowertoolsTelemetry
from nebula.providers.simulated import Call
from nebula.settings import RetirementSettings
from nebula.stores.dynamo_blocks import DynamoBlockStore
from nebula.stores.dynamo_claims import DynamoClaimStore
from nebula.stores.dynamo_credentials import DynamoCredentialStore
from nebula.stores.dynamo_sightings import DynamoSightingStore
from nebula.workflows.orphans import OrphanPolicy
from nebula.workflows.poll import scheduled
from nebula.workflows.retire import retire_credentials

from local.template import load
from tests.benchmark.bus import mappings
from tests.benchmark.life import empty_account
from tests.benchmark.prices import (
    ALARM_METRICS,
    AS_OF,
    CUSTOM_METRICS,
    DYNAMODB_READS,
    DYNAMODB_WRITES,
    HOURS_PER_MONTH,
    KMS_REQUESTS,
    LAMBDA_GB_SECONDS,
    LAMBDA_REQUESTS,
    LOG_BYTES,
    SCHEDULER,
    SQS_REQUESTS,
    Price,
    cost,
)
from tests.support.dynamo_calls import count_calls
from tests.support.world import World

MINUTES = 20
RUNS_PER_MONTH = HOURS_PER_MONTH * 60
#: Seconds until an AWS service in the region, and until a cluster or a provider on the internet, has answered.
AWS_ANSWER = 0.015
OUTSIDE_ANSWER = 0.25
#: Processor seconds of ours for one AWS call, which the memory ledgers of the measured run do not make.
AWS_CALL_CPU = 0.002
#: One vCPU comes with 1,769 MB, https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
MB_PER_VCPU = 1769
#: Processor seconds of a cold start beside our imports, and cold starts an hour: one of each scheduled function.
COLD_CPU, COLD_PER_HOUR = 1.0, 2
#: START, END and REPORT of one invocation, as Lambda writes them.
PLATFORM_LOG_BYTES = 350
#: Lambda keeps five long polls of 20 s open on each queue, https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html
POLLS_PER_QUEUE_MINUTE = 15
#: Parameters are read again after five minutes: a provider's and a cluster's, each decrypted.
DECRYPTIONS_PER_HOUR = 2 * 12 * 2
_RESOURCES = {
    "installation_id": "bench",
    "event_bus": "bus",
    "claims_table": "claims",
    "blocks_table": "blocks",
    "credentials_table": "credentials",
    "providers_path": "/nebula/bench/providers",
    "clusters_path": "/nebula/bench/clusters",
    "fingerprint_key_parameter": "/nebula/bench/fingerprint-key",
}


def run() -> dict[str, Any]:
    """The arithmetic and all that went into it."""
    template = load()
    memory = int(template["Globals"]["Function"]["MemorySize"])
    counted = _counted()
    cpu = _cpu_seconds()
    alarms = [r["Properties"] for r in template["Resources"].values() if r["Type"] == "AWS::CloudWatch::Alarm"]
    alarm_metrics = sum(sum("MetricStat" in part for part in alarm.get("Metrics", ())) or 1 for alarm in alarms)
    minute, hour = counted["minute"], counted["hour"]
    seconds = {
        "minute": billed_seconds(cpu["minute"], minute, memory),
        "hour": billed_seconds(cpu["hour"], hour, memory),
        "cold": COLD_CPU * MB_PER_VCPU / memory,
    }
    billed = (
        RUNS_PER_MONTH * seconds["minute"]
        + HOURS_PER_MONTH * seconds["hour"]
        + HOURS_PER_MONTH * COLD_PER_HOUR * seconds["cold"]
    )
    runs = RUNS_PER_MONTH + HOURS_PER_MONTH
    quantities: dict[str, tuple[Price, float]] = {
        "Lambda time": (LAMBDA_GB_SECONDS, billed * memory / 1024),
        "Lambda requests": (LAMBDA_REQUESTS, runs),
        "Scheduler": (SCHEDULER, runs),
        "SQS polls": (SQS_REQUESTS, len(mappings(template)) * POLLS_PER_QUEUE_MINUTE * RUNS_PER_MONTH),
        "DynamoDB reads": (DYNAMODB_READS, RUNS_PER_MONTH * minute["reads"] + HOURS_PER_MONTH * hour["reads"]),
        "DynamoDB writes": (DYNAMODB_WRITES, RUNS_PER_MONTH * minute["writes"] + HOURS_PER_MONTH * hour["writes"]),
        "Logs": (LOG_BYTES, RUNS_PER_MONTH * minute["log_bytes"] + HOURS_PER_MONTH * hour["log_bytes"]),
        "Alarms": (ALARM_METRICS, alarm_metrics),
        "Metrics": (CUSTOM_METRICS, minute["metrics"] + hour["metrics"]),
        "KMS": (KMS_REQUESTS, HOURS_PER_MONTH * DECRYPTIONS_PER_HOUR),
    }
    return {
        "prices_as_of": AS_OF,
        "memory_mb": memory,
        "counted": counted,
        "cpu_seconds": cpu,
        "billed_seconds": seconds,
        "alarms": len(alarms),
        "alarm_metrics": alarm_metrics,
        "custom_metrics": minute["metrics"] + hour["metrics"],
        **priced(quantities),
    }


def billed_seconds(cpu: float, calls: Mapping[str, float], memory_mb: int) -> float:
    """What Lambda bills of one run: our processor time on its share of a processor, and the waiting for answers."""
    working = (cpu + calls["aws_calls"] * AWS_CALL_CPU) * max(1.0, MB_PER_VCPU / memory_mb)
    return working + calls["aws_calls"] * AWS_ANSWER + calls["outside_calls"] * OUTSIDE_ANSWER


def priced(quantities: Mapping[str, tuple[Price, float]]) -> dict[str, Any]:
    """Lines and totals, with and without the free quantities."""
    lines: dict[str, dict[str, Any]] = {}
    for name, (price, quantity) in quantities.items():
        amount = Decimal(str(round(quantity, 3)))
        lines[name] = {
            "quantity": round(quantity, 1),
            "unit": price.unit,
            "usd_per_unit": f"{price.usd.normalize():f}",
            "free_units": float(price.free),
            "usd": round(float(cost(price, amount, free=False)), 4),
            "usd_with_free_tier": round(float(cost(price, amount, free=True)), 4),
            "source": price.source,
        }
    words = {
        key: " + ".join(f"{name} {line[usd]:.2f}" for name, line in lines.items() if line[usd] >= 0.005)
        for key, usd in (("full", "usd"), ("free", "usd_with_free_tier"))
    }
    return {
        "lines": lines,
        "total": round(sum(line["usd"] for line in lines.values()), 2),
        "total_with_free_tier": round(sum(line["usd_with_free_tier"] for line in lines.values()), 2),
        "arithmetic": words,
    }


def _counted() -> dict[str, dict[str, float]]:
    """Calls, log bytes and metrics of an idle minute and of an idle hour's retirement, over DynamoDB's ledgers."""
    with empty_account() as dynamodb:
        world = World(
            claims=DynamoClaimStore(dynamodb, "claims"),
            blocks=DynamoBlockStore(dynamodb, "blocks"),
            credentials=DynamoCredentialStore(dynamodb, "credentials"),
            sightings=DynamoSightingStore(dynamodb, "blocks"),
        )
        return {name: _count(world, dynamodb, act) for name, act in (("minute", _minute), ("hour", _hour))}


def _count(world: World, dynamodb: Any, act: Any) -> dict[str, float]:
    out = io.StringIO()
    with redirect_stdout(out):
        world.telemetry = PowertoolsTelemetry(f"idle-{act.__name__.strip('_')}")  # type: ignore[assignment]
        act(world)
        kept, calls = out.tell(), count_calls(dynamodb)
        outside, published = _outside(world), len(world.publisher.events)
        for _ in range(MINUTES):
            act(world)
    lines = out.getvalue()[kept:].splitlines()
    asked, written = sum(calls.operations.values()), calls.item_writes
    return {
        "reads": (asked - written) / MINUTES,
        "writes": written / MINUTES,
        "aws_calls": (asked + len(world.publisher.events) - published) / MINUTES,
        "outside_calls": (_outside(world) - outside) / MINUTES,
        "log_bytes": sum(len(line) + 1 for line in lines) / MINUTES + PLATFORM_LOG_BYTES,
        "metrics": sum('"CloudWatchMetrics"' in line for line in lines) / MINUTES,
    }


def _outside(world: World) -> int:
    """Calls so far to the cluster and to the provider; prices are remembered longer than a minute."""
    asked = world.simulated.script.counts.copy()
    return sum(world.emulator.calls.values()) + sum(asked.values()) - asked[Call.OFFERINGS]


def _cpu_seconds() -> dict[str, float]:
    """Processor seconds of one idle run of each function, over memory ledgers."""
    world, used = World(), {}
    for name, act in (("minute", _minute), ("hour", _hour)):
        act(world)
        began = time.process_time()
        for _ in range(MINUTES):
            act(world)
        used[name] = round((time.process_time() - began) / MINUTES, 5)
    return used


def _minute(world: World) -> None:
    world.clock.advance(timedelta(minutes=1))
    until = world.clock.now() + timedelta(minutes=1)
    scheduled(world.services("status_polling"), policy=OrphanPolicy(terminate=True), until=until)


def _hour(world: World) -> None:
    world.clock.advance(timedelta(hours=1))
    retire_credentials(world.services("credential_retirement"), policies(RetirementSettings.model_validate(_RESOURCES)))
