"""Reads of one table: strong by key, paged to the end by partition or whole table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from nebula.stores.claims import LedgerBusyError
from nebula.stores.dynamo_items import Item, to_attributes

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

BATCH = 100
"""Keys of one BatchGetItem, the API's limit."""

MAX_BATCH_ROUNDS = 10


class DynamoReader:
    """Sends the reads of one table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def get(self, key: dict[str, Any]) -> Item | None:
        """One row by its key, strongly consistent."""
        answer = self._client.get_item(TableName=self._table, Key=to_attributes(key), ConsistentRead=True)
        return answer.get("Item")

    def get_all(self, keys: Sequence[dict[str, Any]]) -> Iterator[Item]:
        """The rows that exist under the keys, strongly consistent, in no particular order."""
        for start in range(0, len(keys), BATCH):
            yield from self._get_batch([to_attributes(key) for key in keys[start : start + BATCH]])

    def query(
        self,
        index: str | None,
        hash_name: str,
        hash_value: str,
        *,
        up_to: tuple[str, str] | None = None,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> Iterator[Item]:
        """Rows of one partition in range order, at most ``limit``; strongly consistent on the table itself.

        ``up_to`` bounds the range key (name, value), inclusive.
        """
        request: dict[str, Any] = {
            "TableName": self._table,
            "KeyConditionExpression": "#hash = :hash",
            "ExpressionAttributeNames": {"#hash": hash_name},
            "ExpressionAttributeValues": {":hash": {"S": hash_value}},
            "ScanIndexForward": not newest_first,
        }
        if up_to is not None:
            request["KeyConditionExpression"] += " AND #range <= :range"
            request["ExpressionAttributeNames"]["#range"] = up_to[0]
            request["ExpressionAttributeValues"][":range"] = {"S": up_to[1]}
        if index is None:
            request["ConsistentRead"] = True
        else:
            request["IndexName"] = index
        yield from self._pages(self._client.query, request, limit)

    def scan(self) -> Iterator[Item]:
        """Every row of the table, strongly consistent."""
        yield from self._pages(self._client.scan, {"TableName": self._table, "ConsistentRead": True}, None)

    def _pages(self, read: Any, request: dict[str, Any], limit: int | None) -> Iterator[Item]:
        left = limit
        while left is None or left > 0:
            page = read(**request) if left is None else read(**request, Limit=left)
            yield from page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
            left = None if left is None else left - len(page["Items"])

    def _get_batch(self, keys: list[Item]) -> Iterator[Item]:
        for _ in range(MAX_BATCH_ROUNDS):
            asked: Any = {self._table: {"Keys": keys, "ConsistentRead": True}}
            answer = self._client.batch_get_item(RequestItems=asked)
            yield from answer["Responses"].get(self._table, [])
            missed: Any = answer.get("UnprocessedKeys", {})
            keys = missed.get(self._table, {}).get("Keys", [])
            if not keys:
                return
        raise LedgerBusyError(f"{self._table}: {len(keys)} rows stayed unread")
