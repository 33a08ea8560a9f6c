"""Rules: what reaches which queue, tried on moto's EventBridge and SQS with the template's own resources."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from tests.conftest import FAKE_AWS
from tests.support.cloudformation import logical_id, of_type, properties, template

if TYPE_CHECKING:
    pass

QUEUES = ("PlacementQueue", "CreateQueue", "ReclaimQueue", "RetirementQueue")
DEPLOYED = ("AWS::Events::EventBus", "AWS::Events::Rule", "AWS::SQS::Queue")
PHASES = {
    "Pending": "PlacementQueue",
    "Placed": "CreateQueue",
    "Provisioning": "CreateQueue",
    "Provisioned": "CreateQueue",
    "Releasing": "CreateQueue",
    "Released": None,
    "Withdrawing": "ReclaimQueue",
    "Terminating": "ReclaimQueue",
    "Terminated": None,
}
PLAIN = [
    ("nebula.kubernetes", "Pod Gated", "PlacementQueue"),
    ("nebula.kubernetes", "Pod Changed", "PlacementQueue"),
    ("nebula.kubernetes", "NodePool Changed", "PlacementQueue"),
    ("nebula.provisioning", "Provision Rejected", "PlacementQueue"),
    ("nebula.status_polling", "Pod Gated", "PlacementQueue"),
    ("nebula.status_polling", "NodePool Changed", "PlacementQueue"),
    ("nebula.placement", "Claim Placed", "CreateQueue"),
    ("nebula.status_polling", "Instance Ready", "CreateQueue"),
    ("nebula.kubernetes", "Pod Deleted", "ReclaimQueue"),
    ("nebula.kubernetes", "Secret Changed", "RetirementQueue"),
    ("nebula.operator", "Credential Revocation Acknowledged", "RetirementQueue"),
    ("somebody.else", "Pod Gated", None),
    ("nebula.credential_retirement", "Credential Retired", None),
]


@dataclass(frozen=True)
class Deployed:
    """The deployed bus and queues, and what arrived where."""

    bus: str
    urls: dict[str, str]

    def arrivals(self, source: str, detail_type: str, detail: dict[str, Any], bus: str | None = None) -> list[str]:
        """Put one event; the queues it arrived in, emptied again."""
        entry = {
            "Source": source,
            "DetailType": detail_type,
            "Detail": json.dumps(detail),
            "EventBusName": bus or self.bus,
        }
        boto3.client("events").put_events(Entries=[entry])  # type: ignore[list-item]
        sqs = boto3.client("sqs")
        found = []
        for name, url in self.urls.items():
            for message in sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
                found.append(name)
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
                assert json.loads(message["Body"])["detail-type"] == detail_type
        return found


@pytest.fixture(scope="module")
def deployed() -> Iterator[Deployed]:
    kept = {n: r for n, r in template()["Resources"].items() if r["Type"] in DEPLOYED}
    outputs = {name: {"Value": {"Ref": name}} for name in QUEUES} | {"Bus": {"Value": {"Fn::GetAtt": ["Bus", "Name"]}}}
    body = json.dumps({"Resources": kept, "Outputs": outputs})
    with mock_aws(), pytest.MonkeyPatch.context() as environment:
        for name, value in FAKE_AWS.items():
            environment.setenv(name, value)
        formation = boto3.client("cloudformation")
        formation.create_stack(StackName="rules", TemplateBody=body)
        (stack,) = formation.describe_stacks(StackName="rules")["Stacks"]
        found = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
        yield Deployed(found.pop("Bus"), found)


@pytest.mark.parametrize(("source", "detail_type", "queue"), PLAIN)
def test_each_event_reaches_its_queue_and_no_other(
    deployed: Deployed, source: str, detail_type: str, queue: str | None
) -> None:
    assert deployed.arrivals(source, detail_type, {"schema_version": 1}) == ([queue] if queue else [])


@pytest.mark.parametrize(("phase", "queue"), PHASES.items())
def test_a_due_claim_goes_where_its_phase_is_worked_on(deployed: Deployed, phase: str, queue: str | None) -> None:
    detail = {"schema_version": 1, "phase": phase}
    assert deployed.arrivals("nebula.status_polling", "Claim Due", detail) == ([queue] if queue else [])


@pytest.mark.parametrize(
    "detail_type", ["EC2 Spot Instance Interruption Warning", "EC2 Instance State-change Notification"]
)
def test_what_ec2_says_on_the_default_bus_reaches_reclaim(deployed: Deployed, detail_type: str) -> None:
    assert deployed.arrivals("aws.ec2", detail_type, {"instance-id": "i-1"}, bus="default") == ["ReclaimQueue"]


def test_our_events_on_the_default_bus_wake_nobody(deployed: Deployed) -> None:
    assert deployed.arrivals("nebula.kubernetes", "Pod Gated", {}, bus="default") == []


@pytest.mark.parametrize("rule", sorted(of_type("AWS::Events::Rule")))
def test_each_rule_may_send_to_its_queue_and_to_the_dead_letters(rule: str) -> None:
    (target,) = properties(rule)["Targets"]
    for arn in (target["Arn"], target["DeadLetterConfig"]["Arn"]):
        assert rule in _senders(logical_id(arn))


def _senders(queue: str) -> set[str]:
    """Rules that a queue's policy lets in; the policy admits EventBridge and nobody else."""
    found: set[str] = set()
    for policy in of_type("AWS::SQS::QueuePolicy").values():
        if [logical_id(q) for q in policy["Queues"]] != [queue]:
            continue
        for statement in policy["PolicyDocument"]["Statement"]:
            assert statement["Principal"] == {"Service": "events.amazonaws.com"}
            assert logical_id(statement["Resource"]) == queue
            found |= {logical_id(arn) for arn in statement["Condition"]["ArnEquals"]["aws:SourceArn"]}
    return found


def test_rules_route_on_the_envelope_and_top_level_details_only() -> None:
    for pattern in (rule["EventPattern"] for rule in of_type("AWS::Events::Rule").values()):
        assert set(pattern) <= {"source", "detail-type", "detail"}
        assert all(isinstance(value, list) for value in pattern.get("detail", {}).values())
