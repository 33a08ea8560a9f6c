"""The credentials ledger in DynamoDB (docs/credentials.md).

Table: HASH ``credential`` (``provider/account/fingerprint``), RANGE ``generation`` (Number). No index. A row that has
``forget_at`` also has ``forget_at_epoch`` (whole seconds, the table's TTL); any other stays, as the record of what was
lent. No attribute is secret.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from nebula.domain.credential import Credential, CredentialKey, CredentialState
from nebula.stores.credentials import CredentialConflictError
from nebula.stores.dynamo_items import Item, from_item, to_attributes, to_item
from nebula.stores.dynamo_reads import DynamoReader
from nebula.stores.dynamo_writes import Condition, ConditionFailedError, DynamoWriter, absent, unchanged

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class DynamoCredentialStore:
    """See ``CredentialStore``."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._reader = DynamoReader(client, table)
        self._writer = DynamoWriter(client, table)

    def get(self, key: CredentialKey) -> Credential | None:
        """See ``CredentialStore.get``."""
        item = self._reader.get(_row_key(key))
        return None if item is None else from_item(Credential, item)

    def latest(self, provider: str, account: str, fingerprint: str) -> Credential | None:
        """See ``CredentialStore.latest``."""
        rows = self._reader.query(None, "credential", f"{provider}/{account}/{fingerprint}", limit=1, newest_first=True)
        return next((from_item(Credential, row) for row in rows), None)

    def create(self, credential: Credential) -> Credential:
        """See ``CredentialStore.create``."""
        return self._put(credential, absent("credential"), "exists")

    def save(self, previous: Credential, credential: Credential) -> Credential:
        """See ``CredentialStore.save``."""
        if previous.key != credential.key:
            raise ValueError(f"credential {credential.key} does not replace {previous.key}")
        stands = unchanged(version=previous.version, state=previous.state, last_used_at=previous.last_used_at)
        return self._put(credential.model_copy(update={"version": previous.version + 1}), stands, "moved")

    def all(self, *, include_retired: bool = False) -> Iterator[Credential]:
        """See ``CredentialStore.all``."""
        for item in self._reader.scan():
            row = from_item(Credential, item)
            if include_retired or row.state is not CredentialState.RETIRED:
                yield row

    def _put(self, credential: Credential, condition: Condition, otherwise: str) -> Credential:
        try:
            self._writer.put(_item_of(credential), condition)
        except ConditionFailedError as failed:
            current = self.get(credential.key) if failed.standing is None else from_item(Credential, failed.standing)
            raise CredentialConflictError(f"credential {credential.key} {otherwise}", current) from None
        return credential


def _row_key(key: CredentialKey) -> dict[str, Any]:
    return {"credential": f"{key.provider}/{key.account}/{key.fingerprint}", "generation": key.generation}


def _item_of(credential: Credential) -> Item:
    derived = _row_key(credential.key)
    if credential.forget_at is not None:
        derived["forget_at_epoch"] = int(credential.forget_at.timestamp())
    return to_item(credential) | to_attributes(derived)
