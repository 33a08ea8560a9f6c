"""The ledgers: nothing is lost by a deleted stack, and every index is there from the start."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cloudformation import of_type, properties, template

TABLES = sorted(of_type("AWS::DynamoDB::Table"))
KEYS = {
    "ClaimsTable": ["claim_id"],
    "BlocksTable": ["provider", "block_key"],
    "CredentialsTable": ["credential", "generation"],
}
INDEXES = {
    "due": (["due_partition", "next_action_at"], "INCLUDE"),
    "live": (["live_cluster", "claim_id"], "ALL"),
    "instance": (["instance_id"], "KEYS_ONLY"),
    "credential": (["credential_key", "claim_id"], "KEYS_ONLY"),
}


def _names(schema: list[dict[str, str]]) -> list[str]:
    assert [key["KeyType"] for key in schema] == ["HASH", "RANGE"][: len(schema)]
    return [key["AttributeName"] for key in schema]


def test_there_is_a_table_for_each_ledger() -> None:
    assert {name: _names(properties(name)["KeySchema"]) for name in TABLES} == KEYS


@pytest.mark.parametrize("table", TABLES)
def test_each_table_survives_its_stack_and_can_be_restored(table: str) -> None:
    resource: dict[str, Any] = template()["Resources"][table]
    assert resource["DeletionPolicy"] == resource["UpdateReplacePolicy"] == "Retain"
    own = resource["Properties"]
    assert own["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert own["SSESpecification"] == {"SSEEnabled": True}
    assert own["BillingMode"] == "PAY_PER_REQUEST"


def test_only_what_may_be_forgotten_expires() -> None:
    expiry = {name: properties(name).get("TimeToLiveSpecification") for name in TABLES}
    assert expiry == {
        "ClaimsTable": {"AttributeName": "expires_at", "Enabled": True},
        "BlocksTable": {"AttributeName": "expires_at_epoch", "Enabled": True},
        "CredentialsTable": {"AttributeName": "forget_at_epoch", "Enabled": True},
    }


def test_all_indexes_of_the_claims_table_are_there() -> None:
    indexes = properties("ClaimsTable")["GlobalSecondaryIndexes"]
    found = {i["IndexName"]: (_names(i["KeySchema"]), i["Projection"]["ProjectionType"]) for i in indexes}
    assert found == INDEXES


def test_the_due_index_tells_enough_to_announce_a_claim() -> None:
    (due,) = (i for i in properties("ClaimsTable")["GlobalSecondaryIndexes"] if i["IndexName"] == "due")
    assert set(due["Projection"]["NonKeyAttributes"]) == {"phase", "version", "cluster", "provider", "reason"}
