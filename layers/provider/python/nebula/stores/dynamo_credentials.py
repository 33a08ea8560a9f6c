"""The credentials ledger in DynamoDB (docs/credentials.md).

Table: HASH ``credential`` (``provider/account/fingerprint``), RANGE ``generation`` (Number). No index. A row that has
``forget_at`` also has ``forget_at_epoch`` (whole seconds, the table's TTL); any other stays, as the record of what was
lent. No attribute is secret.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from nebula.domain.credential import Credential, CredentialKey, CredentialState
from nebula.domain.unreadable import UnreadableCredential, UnreadableCredentialError, misfits
from nebula.stores.credentials import CredentialConflictError
from nebula.stores.dynamo_items import Item, to_attributes, to_item, to_values
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
        return None if item is None else _readable(_row_from(item))

    def latest(self, provider: str, account: str, fingerprint: str) -> Credential | UnreadableCredential | None:
        """See ``CredentialStore.latest``."""
        rows = self._reader.query(None, "credential", f"{provider}/{account}/{fingerprint}", limit=1, newest_first=True)
        return next(map(_row_from, rows), None)

    def create(self, credential: Credential) -> Credential:
        """See ``CredentialStore.create``."""
        return self._put(credential, absent("credential"), "exists")

    def save(self, previous: Credential, credential: Credential) -> Credential:
        """See ``CredentialStore.save``."""
        if previous.key != credential.key:
            raise ValueError(f"credential {credential.key} does not replace {previous.key}")
        stands = unchanged(version=previous.version, state=previous.state, last_used_at=previous.last_used_at)
        return self._put(credential.model_copy(update={"version": previous.version + 1}), stands, "moved")

    def all(
        self, *, include_retired: bool = False, unreadable: list[UnreadableCredential] | None = None
    ) -> Iterator[Credential]:
        """See ``CredentialStore.all``."""
        for row in map(_row_from, self._reader.scan()):
            if isinstance(row, UnreadableCredential) and unreadable is not None:
                unreadable.append(row)
            elif include_retired or _readable(row).state is not CredentialState.RETIRED:
                yield _readable(row)

    def _put(self, credential: Credential, condition: Condition, otherwise: str) -> Credential:
        try:
            self._writer.put(_item_of(credential), condition)
        except ConditionFailedError as failed:
            item = failed.standing or self._reader.get(_row_key(credential.key))
            standing = None if item is None else _row_from(item)
            current = standing if isinstance(standing, Credential) else None
            raise CredentialConflictError(f"credential {credential.key} {otherwise}", current) from None
        return credential


def _row_key(key: CredentialKey) -> dict[str, Any]:
    return {"credential": key.line, "generation": key.generation}


def _row_from(item: Item) -> Credential | UnreadableCredential:
    values = to_values(item)
    try:
        return Credential.model_validate(values)
    except ValidationError as error:
        line, generation = values["credential"], int(values["generation"])
        return UnreadableCredential(line=line, generation=generation, problem=", ".join(misfits(error)))


def _readable(row: Credential | UnreadableCredential) -> Credential:
    if isinstance(row, UnreadableCredential):
        raise UnreadableCredentialError(row)
    return row


def _item_of(credential: Credential) -> Item:
    derived = _row_key(credential.key)
    if credential.forget_at is not None:
        derived["forget_at_epoch"] = int(credential.forget_at.timestamp())
    return to_item(credential) | to_attributes(derived)
