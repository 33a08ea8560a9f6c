"""Creates the three ledger tables as the template declares them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from nebula.stores.dynamo_blocks import DynamoBlockStore
from nebula.stores.dynamo_claims import DynamoClaimStore
from nebula.stores.dynamo_credentials import DynamoCredentialStore
from nebula.stores.dynamo_sightings import DynamoSightingStore

from local.template import load

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

TABLES = {"ClaimsTable": "claims", "BlocksTable": "blocks", "CredentialsTable": "credentials"}
_SHAPE = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes")


@cache
def declared_tables() -> dict[str, dict[str, Any]]:
    """Key schema and indexes by the name that tests give the table."""
    resources = load()["Resources"]
    return {
        name: {part: declared for part, declared in resources[logical]["Properties"].items() if part in _SHAPE}
        for logical, name in TABLES.items()
    }


def create_tables(client: DynamoDBClient) -> None:
    """Create the tables under the names in ``TABLES``."""
    for name, shape in declared_tables().items():
        client.create_table(TableName=name, BillingMode="PAY_PER_REQUEST", **shape)


def dynamo_stores(client: DynamoDBClient) -> dict[str, Any]:
    """The four stores over these tables, by the names under which a test world takes them."""
    return {
        "claims": DynamoClaimStore(client, "claims"),
        "blocks": DynamoBlockStore(client, "blocks"),
        "credentials": DynamoCredentialStore(client, "credentials"),
        "sightings": DynamoSightingStore(client, "blocks"),
    }
