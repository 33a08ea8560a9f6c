"""Deploy ``template.yaml`` into moto: what moto can make by CloudFormation, the rest left out by name.

moto's own CloudFormation resolves the template's expressions: each one that is needed becomes an output
of the deployed stack, so that the functions' environments come from the template and nowhere else.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Mapping
from typing import Any, Protocol

from botocore.exceptions import ClientError

from local.deployment import Deployment, Function, FunctionSchedule, Permission, QueueMapping
from local.roles import described_permissions
from local.scaling import Scale
from local.template import Template, load, transform

STACK = "nebula-local"
MADE = frozenset(
    {"AWS::DynamoDB::Table", "AWS::Events::EventBus", "AWS::Events::Rule", "AWS::SQS::Queue", "AWS::SSM::Parameter"}
)
#: The worker itself is the functions, mappings and schedules; moto enforces no permission; nobody reads the rest.
LEFT_OUT = frozenset(
    {
        "AWS::CloudWatch::Alarm",
        "AWS::CloudWatch::Dashboard",
        "AWS::IAM::ManagedPolicy",
        "AWS::IAM::Role",
        "AWS::Lambda::EventInvokeConfig",
        "AWS::Lambda::EventSourceMapping",
        "AWS::Lambda::Function",
        "AWS::Lambda::LayerVersion",
        "AWS::Lambda::Permission",
        "AWS::Logs::LogGroup",
        "AWS::SQS::QueuePolicy",
        "AWS::Scheduler::Schedule",
    }
)
_FUNCTION_PATH = "functions/"
#: It holds back its longest outside call from its time, and what a call may take is not divided.
_UNDIVIDED = frozenset({"StatusPollingFunction"})


class CloudFormation(Protocol):
    """What is used of boto3's client."""

    def create_stack(self, *, StackName: str, TemplateBody: str, Parameters: list[dict[str, str]]) -> Any:  # noqa: N803
        """Make a stack; ``ClientError`` when one of that name stands."""
        ...

    def describe_stacks(self, *, StackName: str) -> Any:  # noqa: N803
        """The stack with its outputs."""
        ...


class UnsupportedResourceError(Exception):
    """The template has a resource that the local stack neither makes nor knows it may leave out."""


class Expressions:
    """Collects the template's expressions as stack outputs, and reads their values back."""

    def __init__(self) -> None:
        self._outputs: dict[str, Any] = {}

    def add(self, expression: Any) -> str:
        """The key of the output that will hold the expression's value."""
        for key, output in self._outputs.items():
            if output["Value"] == expression:
                return key
        key = f"Local{len(self._outputs):04d}"
        self._outputs[key] = {"Value": expression}
        return key

    @property
    def outputs(self) -> dict[str, Any]:
        """For the ``Outputs`` of a template."""
        return self._outputs


def deploy(
    client: CloudFormation,
    *,
    scale: Scale,
    parameters: Mapping[str, str] | None = None,
    template: Template | None = None,
) -> Deployment:
    """Create the stack, or find the one that stands, and describe what runs on it.

    ``UnsupportedResourceError`` for a resource type that nobody here has thought about.
    """
    transformed = transform(load() if template is None else template)
    made = _made(transformed, scale)
    expressions = Expressions()
    left_out = transformed["Resources"].keys() - made.keys()
    described = _describe(transformed, expressions, scale, left_out)
    kept_outputs = {k: v for k, v in transformed.get("Outputs", {}).items() if _resolvable(v["Value"], left_out)}
    body = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Parameters": transformed.get("Parameters", {}),
        "Conditions": transformed.get("Conditions", {}),
        "Resources": made,
        "Outputs": {**kept_outputs, **expressions.outputs},
    }
    values = _create_or_find(client, body, parameters or {})
    return Deployment(
        stack=STACK,
        functions=tuple(_function(entry, values, scale, described) for entry in described),
        outputs={key: values[key] for key in kept_outputs},
        queues={name: values[expressions.add({"Ref": name})] for name in _queues(transformed)},
    )


def _made(template: Template, scale: Scale) -> dict[str, Any]:
    made = {}
    for name, resource in template["Resources"].items():
        kind = resource["Type"]
        if kind not in MADE | LEFT_OUT:
            raise UnsupportedResourceError(f"{name} is an {kind}: decide in local/deploy.py whether the stack makes it")
        if kind in MADE:
            made[name] = copy.deepcopy(resource)
            if kind == "AWS::SQS::Queue":
                made[name]["Properties"] = scale.queue(made[name]["Properties"])
    return made


def _resolvable(value: Any, left_out: Collection[str]) -> bool:
    """Whether an expression names no resource that is left out."""
    if isinstance(value, list):
        return all(_resolvable(item, left_out) for item in value)
    if not isinstance(value, dict):
        return True
    if "Fn::GetAtt" in value:
        return value["Fn::GetAtt"][0] not in left_out
    if "Ref" in value:
        return value["Ref"] not in left_out
    return all(_resolvable(item, left_out) for item in value.values())


def _queues(template: Template) -> list[str]:
    return [name for name, resource in template["Resources"].items() if resource["Type"] == "AWS::SQS::Queue"]


def _pointed(value: Any) -> str:
    return str(value["Ref"] if "Ref" in value else value["Fn::GetAtt"][0])


def _describe(
    template: Template, expressions: Expressions, scale: Scale, left_out: Collection[str]
) -> list[dict[str, Any]]:
    """The functions with output keys in the place of values."""
    resources = template["Resources"]
    for queue in _queues(template):
        expressions.add({"Ref": queue})
    found = []
    for logical_id, resource in resources.items():
        if resource["Type"] != "AWS::Lambda::Function":
            continue
        own = resource["Properties"]
        found.append(
            {
                "logical_id": logical_id,
                "app": f"{own['Code']['S3Key']}/app.py",
                "timeout": own["Timeout"] if logical_id in _UNDIVIDED else scale.timeout(own["Timeout"]),
                "environment": {k: expressions.add(v) for k, v in own["Environment"]["Variables"].items()},
                "mappings": _mappings(resources, logical_id, expressions),
                "schedules": _schedules(resources, logical_id, scale),
                "permissions": described_permissions(
                    resources, logical_id, expressions.add, lambda value: _resolvable(value, left_out)
                ),
            }
        )
    return found


def _mappings(resources: Mapping[str, Any], function: str, expressions: Expressions) -> list[dict[str, Any]]:
    found = []
    for resource in resources.values():
        own = resource.get("Properties", {})
        if resource["Type"] != "AWS::Lambda::EventSourceMapping" or _pointed(own["FunctionName"]) != function:
            continue
        queue = _pointed(own["EventSourceArn"])
        found.append(
            {
                "queue": queue,
                "queue_url": expressions.add({"Ref": queue}),
                "batch_size": own["BatchSize"],
                "concurrency": own["ScalingConfig"]["MaximumConcurrency"],
            }
        )
    return found


def _schedules(resources: Mapping[str, Any], function: str, scale: Scale) -> list[FunctionSchedule]:
    found = []
    for name, resource in resources.items():
        own = resource.get("Properties", {})
        if resource["Type"] != "AWS::Scheduler::Schedule" or _pointed(own["Target"]["Arn"]) != function:
            continue
        every = scale.schedule(own["ScheduleExpression"])
        found.append(FunctionSchedule(name=name, every=every, event=json.loads(own["Target"]["Input"])))
    return found


def _create_or_find(client: CloudFormation, body: Template, parameters: Mapping[str, str]) -> dict[str, str]:
    try:
        client.create_stack(
            StackName=STACK,
            TemplateBody=json.dumps(body),
            Parameters=[{"ParameterKey": k, "ParameterValue": v} for k, v in parameters.items()],
        )
    except ClientError as error:
        if error.response["Error"]["Code"] != "AlreadyExistsException":
            raise
    (stack,) = client.describe_stacks(StackName=STACK)["Stacks"]
    return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}


def _function(
    entry: dict[str, Any], values: Mapping[str, str], scale: Scale, all_entries: list[dict[str, Any]]
) -> Function:
    environment = {name: values[key] for name, key in entry["environment"].items()}
    name = entry["app"].removeprefix(_FUNCTION_PATH).split("/", 1)[0]
    leaseholder = next(e["timeout"] for e in all_entries if e["logical_id"] == "ProvisioningFunction")
    return Function(
        name=name,
        logical_id=entry["logical_id"],
        app=entry["app"],
        timeout=entry["timeout"],
        environment=scale.environment({**environment, "AWS_LAMBDA_FUNCTION_NAME": f"{STACK}-{name}"}, leaseholder),
        mappings=tuple(QueueMapping(**{**m, "queue_url": values[m["queue_url"]]}) for m in entry["mappings"]),
        schedules=tuple(entry["schedules"]),
        permissions=tuple(
            Permission(**{**p, "resources": [values[key] for key in p["resources"]]}) for p in entry["permissions"]
        ),
    )
