"""Sightings in DynamoDB: rows of the blocks table under the partition ``sighting``.

They share that table because both are small, short-lived hints; the partition keeps them out of every
provider's query.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

PARTITION = "sighting"
#: Long enough to see anything twice, short enough that a stale row does no harm.
KEEP = timedelta(days=1)


class DynamoSightingStore:
    """See ``SightingStore``. One conditional write for the first sighting, one read for each later one."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def first_seen(self, subject: str, now: datetime) -> datetime:
        """See ``SightingStore.first_seen``."""
        key = _key(subject)
        found = self._read(subject)
        if found is not None and int(found["expires_at_epoch"]["N"]) > now.timestamp():
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

    def known(self, subject: str) -> bool:
        """See ``SightingStore.known``."""
        return self._read(subject) is not None

    def forget(self, subject: str) -> None:
        """See ``SightingStore.forget``."""
        self._client.delete_item(TableName=self._table, Key=_key(subject))

    def _read(self, subject: str) -> dict[str, AttributeValueTypeDef] | None:
        return self._client.get_item(TableName=self._table, Key=_key(subject), ConsistentRead=True).get("Item")


def _key(subject: str) -> dict[str, dict[str, str]]:
    return {"provider": {"S": PARTITION}, "block_key": {"S": subject}}
