"""What a function's role allows, enforced on its AWS calls: moto itself would allow everything.

A missing permission would otherwise show only in a real account. Queue policies, log groups and KMS are
not looked at; the template tests assert them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import botocore.client
from botocore.exceptions import ClientError

from local.deployment import Permission

ACCOUNT = "123456789012"
_TRANSACTIONS = ("TransactWriteItems", "TransactGetItems")
_BATCHES = ("BatchGetItem", "BatchWriteItem")


class Use(NamedTuple):
    """One thing that a call does: an IAM action on a resource; ``source`` is that of a bus entry."""

    action: str
    resource: str
    source: str = ""


def uses(service: str, operation: str, parameters: Mapping[str, Any], region: str) -> Iterator[Use]:
    """What IAM checks for a call."""
    prefix = f"arn:aws:{service}:{region}:{ACCOUNT}:"
    if service == "dynamodb":
        yield from _table_uses(operation, parameters, prefix)
    elif service == "sqs":
        action = operation.removesuffix("Batch")
        yield Use(f"sqs:{action}", prefix + str(parameters["QueueUrl"]).rsplit("/", 1)[1])
    elif service == "events" and operation == "PutEvents":
        for entry in parameters["Entries"]:
            yield Use("events:PutEvents", f"{prefix}event-bus/{entry.get('EventBusName', 'default')}", entry["Source"])
    elif service == "ssm":
        yield Use(f"ssm:{operation}", f"{prefix}parameter{parameters.get('Name') or parameters.get('Path')}")
    elif service == "secretsmanager":
        yield Use(f"secretsmanager:{operation}", str(parameters["SecretId"]))
    else:
        yield Use(f"{service}:{operation}", "*")


def _table_uses(operation: str, parameters: Mapping[str, Any], prefix: str) -> Iterator[Use]:
    if operation in _TRANSACTIONS:
        for part in parameters["TransactItems"]:
            ((kind, item),) = part.items()
            action = "ConditionCheckItem" if kind == "ConditionCheck" else f"{kind}Item"
            yield Use(f"dynamodb:{action}", f"{prefix}table/{item['TableName']}")
    elif operation in _BATCHES:
        for table in parameters["RequestItems"]:
            yield Use(f"dynamodb:{operation}", f"{prefix}table/{table}")
    else:
        index = f"/index/{parameters['IndexName']}" if "IndexName" in parameters else ""
        yield Use(f"dynamodb:{operation}", f"{prefix}table/{parameters['TableName']}{index}")


def allowed(permissions: Sequence[Permission], use: Use) -> bool:
    """Whether some statement allows it."""
    return any(
        use.action in one.actions
        and any(fnmatchcase(use.resource, pattern) for pattern in one.resources)
        and (not one.sources or use.source in one.sources)
        for one in permissions
    )


def enforce(role: str, permissions: Sequence[Permission], region: str) -> None:
    """From now on every AWS call of this process needs a permission, but those of ``local.aws.client``.

    A call without one fails as in an account, and says so on stderr.
    """
    clients: Any = botocore.client.BaseClient
    call = clients._make_api_call

    def checked(self: Any, operation_name: str, api_params: dict[str, Any]) -> Any:
        service = self.meta.service_model.service_name
        if not getattr(self, "operator", False):
            for use in uses(service, operation_name, api_params, region):
                if not allowed(permissions, use):
                    raise _denied(role, operation_name, use)
        return call(self, operation_name, api_params)

    clients._make_api_call = checked


def _denied(role: str, operation: str, use: Use) -> ClientError:
    as_whom = f" as {use.source}" if use.source else ""
    message = f"User: {role} is not authorized to perform: {use.action} on resource: {use.resource}{as_whom}"
    print(json.dumps({"level": "ERROR", "message": "access denied", "detail": message}), file=sys.stderr, flush=True)
    return ClientError({"Error": {"Code": "AccessDeniedException", "Message": message}}, operation)
