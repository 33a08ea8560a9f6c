"""Questions that the template tests ask of the transformed template."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from local.template import load, transform

FUNCTIONS = {
    "placement": "PlacementFunction",
    "provisioning": "ProvisioningFunction",
    "status_polling": "StatusPollingFunction",
    "credential_retirement": "CredentialRetirementFunction",
}
ROLES = {name: logical.replace("Function", "Role") for name, logical in FUNCTIONS.items()}


@cache
def written() -> dict[str, Any]:
    """The template as written; treat as read-only."""
    return load()


@cache
def template() -> dict[str, Any]:
    """The transformed template; treat as read-only."""
    return transform(written())


def of_type(kind: str) -> dict[str, dict[str, Any]]:
    """Properties of every resource of a type, by logical id."""
    return {n: r.get("Properties", {}) for n, r in template()["Resources"].items() if r["Type"] == kind}


def properties(logical_id: str) -> dict[str, Any]:
    """Properties of one resource."""
    found: dict[str, Any] = template()["Resources"][logical_id]["Properties"]
    return found


def logical_id(value: Any) -> str:
    """The resource that a ``Ref``, ``Fn::GetAtt`` or ``Fn::Sub`` of its ARN points to."""
    if "Ref" in value:
        return str(value["Ref"])
    if "Fn::GetAtt" in value:
        return str(value["Fn::GetAtt"][0])
    return str(value["Fn::Sub"]).removeprefix("${").split(".", 1)[0]


@dataclass(frozen=True)
class Statement:
    """One Allow statement: actions, resources as written, condition."""

    actions: tuple[str, ...]
    resources: tuple[Any, ...]
    condition: dict[str, Any]


def _listed(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list) else (value,)


def _statements(document: dict[str, Any]) -> Iterator[Statement]:
    for statement in document["Statement"]:
        if statement["Effect"] == "Deny":
            continue
        yield Statement(
            _listed(statement["Action"]), _listed(statement.get("Resource", ())), statement.get("Condition", {})
        )


def managed_policies(role: str) -> tuple[str, ...]:
    """Logical ids of the managed policies of a role, conditional ones included."""
    found = []
    for arn in properties(role).get("ManagedPolicyArns", []):
        chosen = arn["Fn::If"][1] if "Fn::If" in arn else arn
        found.append(logical_id(chosen))
    return tuple(found)


def statements(role: str) -> list[Statement]:
    """Everything that a role may do."""
    documents = [policy["PolicyDocument"] for policy in properties(role)["Policies"]]
    documents += [properties(policy)["PolicyDocument"] for policy in managed_policies(role)]
    return [statement for document in documents for statement in _statements(document)]


def allowed(role: str, service: str) -> dict[str, set[str]]:
    """Actions of one service that a role may do, by resource (JSON of the expression unless simple)."""
    found: dict[str, set[str]] = {}
    for statement in statements(role):
        actions = {a for a in statement.actions if a.startswith(f"{service}:")}
        for resource in statement.resources if actions else ():
            simple = isinstance(resource, dict) and "Fn::GetAtt" in resource
            key = logical_id(resource) if simple else json.dumps(resource, sort_keys=True)
            found.setdefault(key, set()).update(actions)
    return found


def mappings(function: str) -> dict[str, dict[str, Any]]:
    """Event source mappings of a function (its short name), by the logical id of their queue."""
    return {
        logical_id(mapping["EventSourceArn"]): mapping
        for mapping in of_type("AWS::Lambda::EventSourceMapping").values()
        if logical_id(mapping["FunctionName"]) == FUNCTIONS[function]
    }


def dead_letter_queues() -> set[str]:
    """Queues that hold what could not be delivered or handled."""
    return {name for name in of_type("AWS::SQS::Queue") if name.endswith("DeadLetters")}
