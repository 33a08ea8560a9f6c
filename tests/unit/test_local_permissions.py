"""The local stack refuses what a function's role would refuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import botocore.client
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from local.deployment import Permission
from local.permissions import Use, allowed, enforce, uses

REGION = "eu-central-1"
ARN = f"arn:aws:{{}}:{REGION}:123456789012:"
TABLE = ARN.format("dynamodb") + "table/claims"
BUS = ARN.format("events") + "event-bus/bus"

CALLS: list[tuple[str, str, dict[str, Any], list[Use]]] = [
    ("dynamodb", "GetItem", {"TableName": "claims"}, [Use("dynamodb:GetItem", TABLE)]),
    ("dynamodb", "Query", {"TableName": "claims", "IndexName": "due"}, [Use("dynamodb:Query", f"{TABLE}/index/due")]),
    ("dynamodb", "BatchGetItem", {"RequestItems": {"claims": {}}}, [Use("dynamodb:BatchGetItem", TABLE)]),
    (
        "dynamodb",
        "TransactWriteItems",
        {"TransactItems": [{"Put": {"TableName": "claims"}}, {"ConditionCheck": {"TableName": "claims"}}]},
        [Use("dynamodb:PutItem", TABLE), Use("dynamodb:ConditionCheckItem", TABLE)],
    ),
    (
        "sqs",
        "SendMessageBatch",
        {"QueueUrl": "https://sqs.example/123456789012/ticks"},
        [Use("sqs:SendMessage", ARN.format("sqs") + "ticks")],
    ),
    (
        "events",
        "PutEvents",
        {"Entries": [{"Source": "nebula.placement", "EventBusName": "bus"}]},
        [Use("events:PutEvents", BUS, "nebula.placement")],
    ),
    ("ssm", "GetParameter", {"Name": "/n/a"}, [Use("ssm:GetParameter", ARN.format("ssm") + "parameter/n/a")]),
    (
        "ssm",
        "GetParametersByPath",
        {"Path": "/n/"},
        [Use("ssm:GetParametersByPath", ARN.format("ssm") + "parameter/n/")],
    ),
    ("ec2", "RunInstances", {}, [Use("ec2:RunInstances", "*")]),
]


@pytest.mark.parametrize(("service", "operation", "parameters", "expected"), CALLS)
def test_a_call_is_read_as_iam_reads_it(
    service: str, operation: str, parameters: dict[str, Any], expected: list[Use]
) -> None:
    assert list(uses(service, operation, parameters, REGION)) == expected


def _permission(**changes: Any) -> Permission:
    return Permission(**({"actions": ("dynamodb:GetItem",), "resources": (TABLE,)} | changes))


def test_what_is_not_allowed_is_refused() -> None:
    granted = [_permission()]
    assert allowed(granted, Use("dynamodb:GetItem", TABLE))
    assert not allowed(granted, Use("dynamodb:PutItem", TABLE))
    assert not allowed(granted, Use("dynamodb:GetItem", f"{TABLE}/index/due"))
    assert not allowed([], Use("dynamodb:GetItem", TABLE))


def test_a_star_at_the_end_of_a_resource_means_everything_below() -> None:
    path = ARN.format("ssm") + "parameter/n/"
    granted = [_permission(actions=("ssm:GetParameter",), resources=(f"{path}*",))]
    assert allowed(granted, Use("ssm:GetParameter", f"{path}x"))
    assert not allowed(granted, Use("ssm:GetParameter", ARN.format("ssm") + "parameter/other"))


def test_nobody_speaks_on_the_bus_in_another_name() -> None:
    granted = [_permission(actions=("events:PutEvents",), resources=(BUS,), sources=("nebula.placement",))]
    assert allowed(granted, Use("events:PutEvents", BUS, "nebula.placement"))
    assert not allowed(granted, Use("events:PutEvents", BUS, "nebula.kubernetes"))


@pytest.fixture
def enforced(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    clients: Any = botocore.client.BaseClient
    monkeypatch.setattr(clients, "_make_api_call", clients._make_api_call)
    with mock_aws():
        enforce("example", [_permission()], REGION)
        yield


def test_a_refused_call_fails_as_in_an_account_and_is_not_made(
    enforced: None, capsys: pytest.CaptureFixture[str]
) -> None:
    sqs: Any = boto3.client("sqs")
    sqs.operator = True
    url = sqs.create_queue(QueueName="ticks")["QueueUrl"]
    with pytest.raises(ClientError, match="not authorized to perform: sqs:SendMessage"):
        boto3.client("sqs").send_message(QueueUrl=url, MessageBody="x")
    assert "Messages" not in sqs.receive_message(QueueUrl=url)
    assert "access denied" in capsys.readouterr().err
