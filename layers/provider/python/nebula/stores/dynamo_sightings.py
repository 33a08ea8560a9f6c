"""Sightings in DynamoDB: rows of the blocks table under the partitions ``sighting`` and ``note``.

They share that table because both are small, short-lived hints; the partition keeps them out of every
provider's query.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeGuard

from botocore.exceptions import ClientError

from nebula.stores.sightings import KEEP

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

PARTITION = "sighting"
NOTES = "note"
#: A note outlives whatever it is compared with.
KEEP_NOTES = timedelta(days=3650)


class DynamoSightingStore:
    """See ``SightingStore``. One conditional write for the first sighting, one read for each later one."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def first_seen(self, subject: str, now: datetime) -> datetime:
        """See ``SightingStore.first_seen``."""
        key = _key(subject)
        found = self._read(subject)
        if _stands(found, now):
            return datetime.fromisoformat(found["first_seen_at"]["S"])
        item = {
            **key,
            "first_seen_at": {"S": now.isoformat()},
            "expires_at_epoch": {"N": str(int((now + KEEP).timestamp()))},
        }
        try:
            self._client.put_item(
                TableName=self._table,
                Item=item,
                ConditionExpression="attribute_not_exists(block_key) OR expires_at_epoch <= :now",
                ExpressionAttributeValues={":now": {"N": str(int(now.timestamp()))}},
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
        return now

    def known(self, subject: str, now: datetime) -> bool:
        """See ``SightingStore.known``. Expired rows stay readable for days, so the time is compared here."""
        return _stands(self._read(subject), now)

    def note(self, subject: str, value: str, now: datetime) -> str | None:
        """See ``SightingStore.note``: a read, and a write when the value is another one."""
        key = {"provider": {"S": NOTES}, "block_key": {"S": subject}}
        before = self.recall(subject)
        if before != value:
            expires = str(int((now + KEEP_NOTES).timestamp()))
            item = {**key, "value": {"S": value}, "expires_at_epoch": {"N": expires}}
            self._client.put_item(TableName=self._table, Item=item)
        return before

    def recall(self, subject: str) -> str | None:
        """See ``SightingStore.recall``: one strong read."""
        key = {"provider": {"S": NOTES}, "block_key": {"S": subject}}
        found = self._client.get_item(TableName=self._table, Key=key, ConsistentRead=True).get("Item")
        return found["value"]["S"] if found is not None else None

    def forget(self, subject: str) -> None:
        """See ``SightingStore.forget``."""
        self._client.delete_item(TableName=self._table, Key=_key(subject))

    def _read(self, subject: str) -> dict[str, AttributeValueTypeDef] | None:
        return self._client.get_item(TableName=self._table, Key=_key(subject), ConsistentRead=True).get("Item")


def _stands(row: dict[str, AttributeValueTypeDef] | None, now: datetime) -> TypeGuard[dict[str, AttributeValueTypeDef]]:
    return row is not None and int(row["expires_at_epoch"]["N"]) > now.timestamp()


def _key(subject: str) -> dict[str, dict[str, str]]:
    return {"provider": {"S": PARTITION}, "block_key": {"S": subject}}
