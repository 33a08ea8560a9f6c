"""What a DynamoDB client asks for, counted at the wire: operations by table, and item writes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem"})


@dataclass
class DynamoCalls:
    """``operations`` counts (table or index, IAM action) pairs; a transaction counts each of its parts.

    ``item_writes`` counts rows as they are billed, refused conditions included.
    """

    operations: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def item_writes(self) -> int:
        """Rows written, deleted, or tried to."""
        return sum(times for (_, action), times in self.operations.items() if action in _WRITES)

    def note(self, operation: str, request: dict[str, Any]) -> None:
        """Take one request in."""
        for part in request.get("TransactItems", ()):
            ((kind, write),) = part.items()
            self.operations[write["TableName"], f"{kind}Item"] += 1
        for table in request.get("RequestItems", ()):
            self.operations[table, operation] += 1
        if "TableName" in request:
            index = f"/index/{request['IndexName']}" if "IndexName" in request else ""
            self.operations[request["TableName"] + index, operation] += 1


def count_calls(client: DynamoDBClient) -> DynamoCalls:
    """Count what the client asks for from now on."""
    calls = DynamoCalls()
    client.meta.events.register(
        "provide-client-params.dynamodb.*",
        lambda params, model, **_: calls.note(model.name, params),
    )
    return calls
