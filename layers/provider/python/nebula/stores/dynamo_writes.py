"""Conditional writes: what a refusal means, and when to try again.

Every row carries ``write_id``, new with each write. When the answer to a write is lost, the SDK sends it again
and the condition then fails on our own row; the id tells that apart from a row that somebody else wrote.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from botocore.exceptions import ClientError

from nebula.stores.claims import LedgerBusyError
from nebula.stores.dynamo_items import Item, to_attributes

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

CONDITION_FAILED = "ConditionalCheckFailed"
_CONDITION_ERROR = "ConditionalCheckFailedException"
_CANCELED = "TransactionCanceledException"
_BUSY_ERRORS = frozenset({"TransactionConflictException", "TransactionInProgressException"})
_BUSY_REASONS = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})

MAX_TRIES = 8
FIRST_PAUSE_SECONDS = 0.02
LONGEST_PAUSE_SECONDS = 0.5


@dataclass(frozen=True)
class Condition:
    """A condition expression with its parts: ``names`` without ``#``, ``values`` without ``:``."""

    expression: str
    names: Mapping[str, str]
    values: Mapping[str, Any]

    def parameters(self) -> dict[str, Any]:
        """As the API takes them; empty maps are left out because the API refuses them."""
        parameters: dict[str, Any] = {"ConditionExpression": self.expression}
        if self.names:
            parameters["ExpressionAttributeNames"] = {f"#{key}": name for key, name in self.names.items()}
        if self.values:
            parameters["ExpressionAttributeValues"] = to_attributes({f":{k}": v for k, v in self.values.items()})
        return parameters


def absent(key: str) -> Condition:
    """No row stands under the key."""
    return Condition("attribute_not_exists(#key)", {"key": key}, {})


def unchanged(**values: Any) -> Condition:
    """A row stands and these attributes of it are as given (None: the attribute is absent)."""
    given = {name: value for name, value in values.items() if value is not None}
    clauses = [f"#{name} = :{name}" for name in given]
    clauses += [f"attribute_not_exists(#{name})" for name in values if name not in given]
    return Condition(" AND ".join(clauses), {name: name for name in values}, given)


class ConditionFailedError(Exception):
    """A condition did not hold; ``standing`` is the row there now, None when the answer did not hold it.

    ``position`` is the place of the refused write within its transaction.
    """

    def __init__(self, standing: Item | None, position: int = 0) -> None:
        super().__init__("condition failed")
        self.standing = standing or None
        self.position = position


class DynamoWriter:
    """Sends conditional writes of one table. ``sleep`` takes seconds; ``chance`` gives 0 to 1."""

    def __init__(
        self,
        client: DynamoDBClient,
        table: str,
        *,
        sleep: Callable[[float], None] = time.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._table = table
        self._sleep = sleep
        self._chance = chance

    def put(self, item: Item, condition: Condition) -> None:
        """Write a row on a condition; ``ConditionFailedError`` with the row that stands."""
        write_id = uuid4().hex
        parameters = self.put_parameters(item, condition, write_id)
        try:
            self._persist(lambda: self._client.put_item(**parameters))
        except ConditionFailedError as failed:
            if not _is_ours(failed.standing, write_id):
                raise

    def update(self, key: Item, update: str, condition: Condition, values: Mapping[str, Any]) -> None:
        """Change attributes of a row on a condition; ``ConditionFailedError`` when it does not hold."""
        parameters = condition.parameters()
        parameters["ExpressionAttributeValues"] = {
            **parameters.get("ExpressionAttributeValues", {}),
            **to_attributes({f":{name}": value for name, value in values.items()}),
        }
        self._persist(
            lambda: self._client.update_item(TableName=self._table, Key=key, UpdateExpression=update, **parameters)
        )

    def transact(self, item: Item, condition: Condition, updates: Sequence[Mapping[str, Any]]) -> None:
        """Write a row and update others, all or nothing; position 0 of a failure is the row."""
        write_id = uuid4().hex
        writes: list[Any] = [{"Put": self.put_parameters(item, condition, write_id)}]
        writes += [{"Update": {"TableName": self._table, **update}} for update in updates]
        try:
            self._persist(lambda: self._client.transact_write_items(TransactItems=writes, ClientRequestToken=write_id))
        except ConditionFailedError as failed:
            if failed.position or not _is_ours(failed.standing, write_id):
                raise

    def put_parameters(self, item: Item, condition: Condition, write_id: str) -> dict[str, Any]:
        """One Put as the API takes it."""
        return {
            "TableName": self._table,
            "Item": {**item, "write_id": {"S": write_id}},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            **condition.parameters(),
        }

    def _persist(self, send: Callable[[], object]) -> None:
        """Send until the rows are not held by another transaction; LedgerBusyError after ``MAX_TRIES``."""
        for attempt in range(MAX_TRIES):
            if attempt:
                longest = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2**attempt)
                self._sleep(longest * self._chance())
            try:
                send()
            except ClientError as error:
                _raise_unless_busy(error)
            else:
                return
        raise LedgerBusyError(f"{self._table}: rows still held by other writers after {MAX_TRIES} tries")


def _is_ours(standing: Item | None, write_id: str) -> bool:
    return standing is not None and standing.get("write_id") == {"S": write_id}


def _raise_unless_busy(error: ClientError) -> None:
    """Turn a refusal into ``ConditionFailedError``; return for one that time heals; raise any other."""
    response: Any = error.response
    code = response["Error"]["Code"]
    if code == _CONDITION_ERROR:
        raise ConditionFailedError(response.get("Item")) from None
    if code in _BUSY_ERRORS:
        return
    reasons = response.get("CancellationReasons", []) if code == _CANCELED else []
    for position, reason in enumerate(reasons):
        if reason.get("Code") == CONDITION_FAILED:
            raise ConditionFailedError(reason.get("Item"), position) from None
    if not any(reason.get("Code") in _BUSY_REASONS for reason in reasons):
        raise error
