"""The template as the local stack deploys it into moto."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import boto3
import pytest
from moto import mock_aws

from local.deploy import UnsupportedResourceError, deploy
from local.deployment import Deployment
from local.scaling import Scale
from local.template import load


@pytest.fixture
def aws() -> Iterator[None]:
    with mock_aws():
        yield


def _deploy(scale: Scale | None = None, **parameters: str) -> Deployment:
    return deploy(boto3.client("cloudformation"), scale=scale or Scale(15), parameters=parameters)


def test_each_function_gets_its_environment_from_the_template(aws: None) -> None:
    deployment = _deploy(UnusedAfter="PT0S")
    names = [function.name for function in deployment.functions]
    assert names == ["placement", "provisioning", "status_polling", "credential_retirement"]
    retirement = deployment.function("credential_retirement")
    assert retirement.environment["NEBULA_UNUSED_AFTER"] == "PT0S"
    assert retirement.environment["NEBULA_CLAIMS_TABLE"] == deployment.outputs["ClaimsTableName"]
    assert retirement.environment["NEBULA_EVENT_BUS"] == deployment.outputs["EventBusName"]
    assert "NEBULA_TICK_QUEUE_URL" not in retirement.environment
    assert deployment.function("placement").environment["NEBULA_TICK_QUEUE_URL"] == deployment.queues["TickQueue"]


def test_the_tables_and_queues_stand_as_the_template_has_them(aws: None) -> None:
    deployment = _deploy(Scale(1))
    table = boto3.client("dynamodb").describe_table(TableName=deployment.outputs["ClaimsTableName"])["Table"]
    assert {index["IndexName"] for index in table["GlobalSecondaryIndexes"]} == {
        "due",
        "live",
        "instance",
        "credential",
    }
    attributes = boto3.client("sqs").get_queue_attributes(
        QueueUrl=deployment.queues["CreateQueue"], AttributeNames=["VisibilityTimeout", "RedrivePolicy"]
    )["Attributes"]
    assert attributes["VisibilityTimeout"] == "540"
    assert "CreateDeadLetters" in attributes["RedrivePolicy"]


def test_mappings_and_schedules_are_those_of_the_template(aws: None) -> None:
    deployment = _deploy()
    mappings = {m.queue: (m.batch_size, m.concurrency) for m in deployment.function("provisioning").mappings}
    assert mappings == {"CreateQueue": (1, 20), "ReclaimQueue": (5, 10)}
    (schedule,) = deployment.function("status_polling").schedules
    assert (schedule.every, schedule.event["detail-type"]) == (4, "Status Poll Scheduled")


def test_a_restarted_worker_finds_the_stack_that_stands(aws: None) -> None:
    assert _deploy() == _deploy()


def test_a_resource_that_nobody_thought_about_is_an_error(aws: None) -> None:
    template = copy.deepcopy(load())
    template["Resources"]["Topic"] = {"Type": "AWS::SNS::Topic"}
    with pytest.raises(UnsupportedResourceError, match="Topic is an AWS::SNS::Topic"):
        deploy(boto3.client("cloudformation"), scale=Scale(15), template=template)
