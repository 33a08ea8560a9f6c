"""What every credentials ledger does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from nebula.domain.credential import Credential, CredentialKey, CredentialState
from nebula.stores.credentials import CredentialConflictError, CredentialStore
from nebula.stores.dynamo_credentials import DynamoCredentialStore

from tests.support.claims import NOW, SECOND

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def credential(fingerprint: str = "abc", generation: int = 1, **changes: object) -> Credential:
    key = CredentialKey(provider="runpod", account="acct", fingerprint=fingerprint, generation=generation)
    made = Credential(
        key=key, registry="ghcr.io/acme", sources=("prod/default/pull",), created_at=NOW, last_used_at=NOW
    )
    return made.model_copy(update=changes)


FULL = credential(
    state=CredentialState.RETIRED,
    provider_id="reg-1",
    username_hint="a***e",
    superseded_at=NOW,
    retired_at=NOW + SECOND,
    expires_at=NOW + 2 * SECOND,
    note="in use, kept",
    revocation_announced_at=NOW,
    revocation_acknowledged_at=NOW,
    forget_at=NOW + 400 * 24 * 3600 * SECOND,
)


@pytest.mark.parametrize("row", [credential(), FULL])
def test_what_is_written_is_read_back(credentials: CredentialStore, row: Credential) -> None:
    assert credentials.get(row.key) is None
    assert credentials.create(row) == row
    assert credentials.get(row.key) == row


def test_a_second_create_conflicts_and_shows_what_stands(credentials: CredentialStore) -> None:
    first = credentials.create(credential())
    with pytest.raises(CredentialConflictError) as conflict:
        credentials.create(credential(registry="docker.io"))
    assert conflict.value.current == first


def test_latest_is_the_highest_generation(credentials: CredentialStore) -> None:
    assert credentials.latest("runpod", "acct", "abc") is None
    for generation in (2, 10, 9):
        credentials.create(credential(generation=generation))
    credentials.create(credential("other", generation=11))
    latest = credentials.latest("runpod", "acct", "abc")
    assert latest == credential(generation=10)
    assert credentials.latest("runpod", "elsewhere", "abc") is None


def test_a_save_raises_the_version(credentials: CredentialStore) -> None:
    first = credentials.create(credential())
    used = credentials.save(first, first.model_copy(update={"last_used_at": NOW + SECOND}))
    assert used.version == 2
    assert credentials.get(first.key) == used


@pytest.mark.parametrize("stale", [{"version": 2}, {"state": CredentialState.RETIRING}, {"last_used_at": NOW - SECOND}])
def test_a_save_on_a_moved_row_conflicts(credentials: CredentialStore, stale: dict[str, object]) -> None:
    first = credentials.create(credential())
    with pytest.raises(CredentialConflictError) as conflict:
        credentials.save(first.model_copy(update=stale), first)
    assert conflict.value.current == first
    assert credentials.get(first.key) == first


def test_a_save_without_a_row_conflicts_with_nothing_there(credentials: CredentialStore) -> None:
    with pytest.raises(CredentialConflictError) as conflict:
        credentials.save(credential(), credential())
    assert conflict.value.current is None


def test_a_row_never_replaces_another(credentials: CredentialStore) -> None:
    first = credentials.create(credential())
    with pytest.raises(ValueError, match="does not replace"):
        credentials.save(first, credential(generation=2))


def test_all_shows_retired_rows_only_on_request(credentials: CredentialStore) -> None:
    live = [credentials.create(credential(f"f{n}")) for n in range(3)]
    credentials.create(FULL)
    by_key = sorted(credentials.all(), key=lambda row: row.key.fingerprint)
    assert by_key == live
    assert len(list(credentials.all(include_retired=True))) == 4


def test_all_reads_every_page(credentials: CredentialStore) -> None:
    made = {str(credentials.create(credential(f"f{n}", note="x" * 60_000)).key) for n in range(40)}
    assert {str(row.key) for row in credentials.all()} == made


def test_a_row_expires_in_dynamodb_only_once_it_may_be_forgotten(dynamodb: DynamoDBClient) -> None:
    store = DynamoCredentialStore(dynamodb, "credentials")
    store.create(credential("kept", state=CredentialState.RETIRED, retired_at=NOW, expires_at=NOW))
    may_go = store.create(credential("over", state=CredentialState.RETIRED, retired_at=NOW))
    store.save(may_go, may_go.model_copy(update={"forget_at": NOW + SECOND}))
    items = {item["key"]["M"]["fingerprint"]["S"]: item for item in dynamodb.scan(TableName="credentials")["Items"]}
    assert items["over"]["forget_at_epoch"] == {"N": str(int(NOW.timestamp()) + 1)}
    assert "forget_at_epoch" not in items["kept"]
