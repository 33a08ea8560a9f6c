"""The blocks ledger in DynamoDB (docs/placement.md).

Table: HASH ``provider``, RANGE ``block_key`` (``kind/shape/tier/region``). ``expires_at_epoch`` (whole seconds,
rounded up) is the table's TTL; whether a block stands is decided here from ``expires_at``, because expired rows stay
readable for days (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/howitworks-ttl.html).
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING

from nebula.domain.unreadable import UnreadableBlock
from nebula.stores.blocks import Block, block_at, standing
from nebula.stores.dynamo_items import Item, to_attributes, to_item, to_values
from nebula.stores.dynamo_reads import DynamoReader
from nebula.stores.dynamo_writes import Condition, ConditionFailedError, DynamoWriter

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class DynamoBlockStore:
    """See ``BlockStore``."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table
        self._reader = DynamoReader(client, table)
        self._writer = DynamoWriter(client, table)

    def put(self, block: Block) -> Block:
        """See ``BlockStore.put``."""
        longer = Condition(
            "attribute_not_exists(#expires) OR #expires < :expires",
            {"expires": "expires_at"},
            {"expires": block.expires_at},
        )
        try:
            self._writer.put(_item_of(block), longer)
        except ConditionFailedError as failed:
            stands = None if failed.standing is None else block_at(to_values(failed.standing), block.created_at)
            return stands if isinstance(stands, Block) else block
        return block

    def active(self, provider: str, now: datetime, unreadable: list[UnreadableBlock] | None = None) -> list[Block]:
        """See ``BlockStore.active``."""
        items = self._reader.query(None, "provider", provider)
        return standing((block_at(to_values(item), now) for item in items), unreadable)

    def clear(self, provider: str) -> int:
        """See ``BlockStore.clear``. A block that was written again since it was read stays."""
        return sum(self._removed(row) for row in list(self._reader.query(None, "provider", provider)))

    def _removed(self, row: Item) -> bool:
        try:
            self._client.delete_item(
                TableName=self._table,
                Key={"provider": row["provider"], "block_key": row["block_key"]},
                ConditionExpression="#id = :id",
                ExpressionAttributeNames={"#id": "write_id"},
                ExpressionAttributeValues={":id": row["write_id"]},
            )
        except self._client.exceptions.ConditionalCheckFailedException:
            return False
        return True


def _item_of(block: Block) -> Item:
    expires = math.ceil(block.expires_at.timestamp())
    return to_item(block) | to_attributes({"block_key": block.key, "expires_at_epoch": expires})
