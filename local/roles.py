"""The roles of the template, as expressions that the deployed stack resolves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Resources = Mapping[str, Any]


def described_permissions(
    resources: Resources, function: str, add: Callable[[Any], str], resolvable: Callable[[Any], bool]
) -> list[dict[str, Any]]:
    """Each Allow statement of a function's role, with the output keys of its resources.

    Resources that the local stack does not make (log groups) are left out, and statements without any left too.
    Managed policies under a condition are for keys of one's own, which nobody has here.
    """
    role = resources[resources[function]["Properties"]["Role"]["Fn::GetAtt"][0]]["Properties"]
    found = []
    for statement in _statements(resources, role):
        named = [one for one in _listed(statement["Resource"]) if resolvable(one)]
        if named:
            condition = statement.get("Condition", {}).get("StringEquals", {})
            found.append(
                {
                    "actions": _listed(statement["Action"]),
                    "resources": [add(one) for one in named],
                    "sources": _listed(condition.get("events:source", [])),
                }
            )
    return found


def _statements(resources: Resources, role: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    documents = [policy["PolicyDocument"] for policy in role.get("Policies", [])]
    for arn in role.get("ManagedPolicyArns", []):
        if "Ref" in arn:
            documents.append(resources[arn["Ref"]]["Properties"]["PolicyDocument"])
    for document in documents:
        yield from document["Statement"]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
