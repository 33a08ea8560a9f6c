"""The claims ledger in DynamoDB (docs/data-model.md).

Table: HASH ``claim_id``. Every field of a claim is an attribute of its own. Added for the indexes, all sparse:

- ``due``: HASH ``due_partition`` (always ``due``), RANGE ``next_action_at``; live claims that owe an action. Projects
  ``phase, version, cluster, provider, reason``. One partition takes about 1,000 writes a second.
- ``live``: HASH ``live_cluster``, RANGE ``claim_id``; until Terminated. Projects everything.
- ``instance``: HASH ``instance_id``; while the latest attempt may be billed. Keys only.
- ``credential``: HASH ``credential_key``, RANGE ``claim_id``; until Terminated, when the key moves to
  ``former_credential_key``. Keys only.

``expires_at`` (epoch seconds, the table's TTL) is set when a claim is Terminated, 400 days ahead: spend is computed
from ended claims. Budget counters are rows of the same table: ``claim_id`` = ``budget/<cluster>/<node pool>``, with
``committed_per_hour`` and ``version`` and no index attribute.

Index reads are eventually consistent and only find; what they find is read again from the table.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from nebula.domain.claim import Claim
from nebula.domain.unreadable import UnreadableClaim, UnreadableClaimError, misfits
from nebula.stores.budgeting import CounterChange, counter_changes
from nebula.stores.claims import Budget, BudgetExhaustedError, ConflictError, DueClaim
from nebula.stores.dynamo_items import Item, from_item, time_text, to_attributes, to_item, to_values
from nebula.stores.dynamo_reads import DynamoReader
from nebula.stores.dynamo_writes import Condition, ConditionFailedError, DynamoWriter, absent, unchanged

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

DUE = "due"
KEEP_TERMINATED = timedelta(days=400)


class DynamoClaimStore:
    """See ``ClaimStore``. Raises ``LedgerBusyError`` when counters stay contended through every try."""

    def __init__(
        self,
        client: DynamoDBClient,
        table: str,
        *,
        sleep: Callable[[float], None] = time.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._reader = DynamoReader(client, table)
        self._writer = DynamoWriter(client, table, sleep=sleep, chance=chance)

    def get(self, claim_id: str) -> Claim | None:
        """See ``ClaimStore.get``."""
        item = self._reader.get({"claim_id": claim_id})
        return None if item is None else claim_from(item)

    def create(self, claim: Claim, *, budget_limit: Decimal | None = None) -> Claim:
        """See ``ClaimStore.create``."""
        self._write(claim, absent("claim_id"), counter_changes(None, claim, budget_limit))
        return claim

    def save(self, previous: Claim, claim: Claim, *, budget_limit: Decimal | None = None) -> Claim:
        """See ``ClaimStore.save``."""
        if previous.claim_id != claim.claim_id:
            raise ValueError(f"claim {claim.claim_id} does not replace {previous.claim_id}")
        written = claim.model_copy(update={"version": previous.version + 1})
        stands = unchanged(version=previous.version, phase=previous.phase)
        self._write(written, stands, counter_changes(previous, written, budget_limit))
        return written

    def touch(self, due: DueClaim, next_action_at: datetime) -> bool:
        """See ``ClaimStore.touch``."""
        stands = unchanged(version=due.version, phase=due.phase, next_action_at=due.next_action_at)
        key = to_attributes({"claim_id": due.claim_id})
        try:
            self._writer.update(key, "SET #next_action_at = :new", stands, {"new": next_action_at})
        except ConditionFailedError:
            return False
        return True

    def live(self, cluster: str, unreadable: list[UnreadableClaim] | None = None) -> Iterator[Claim]:
        """See ``ClaimStore.live``."""
        for row in map(_row_from, self._reader.query("live", "live_cluster", cluster)):
            if isinstance(row, Claim):
                yield row
            elif unreadable is None:
                raise UnreadableClaimError(row)
            else:
                unreadable.append(row)

    def any_live(self, cluster: str) -> bool:
        """See ``ClaimStore.any_live``."""
        return any(True for _ in self._reader.query("live", "live_cluster", cluster, limit=1))

    def due(self, now: datetime, limit: int = 200) -> list[DueClaim]:
        """See ``ClaimStore.due``."""
        come = self._reader.query("due", "due_partition", DUE, up_to=("next_action_at", time_text(now)), limit=limit)
        return [from_item(DueClaim, item) for item in come]

    def find_by_instance(self, instance_id: str) -> Claim | None:
        """See ``ClaimStore.find_by_instance``."""
        for item in self._reader.query("instance", "instance_id", instance_id):
            claim = self.get(item["claim_id"]["S"])
            if claim is not None and claim.instance_id == instance_id:
                return claim
        return None

    def find_by_credential(self, credential_key: str) -> Sequence[Claim | UnreadableClaim]:
        """See ``ClaimStore.find_by_credential``."""
        found = self._reader.query("credential", "credential_key", credential_key)
        keys = [{"claim_id": item["claim_id"]["S"]} for item in found]
        carries = {"S": credential_key}
        return [_row_from(item) for item in self._reader.get_all(keys) if item.get("credential_key") == carries]

    def budget(self, cluster: str, node_pool: str) -> Budget:
        """See ``ClaimStore.budget``."""
        item = self._reader.get({"claim_id": counter_id(cluster, node_pool)})
        return Budget(cluster=cluster, node_pool=node_pool) if item is None else from_item(Budget, item)

    def correct_budget(self, read: Budget, committed_per_hour: Decimal) -> bool:
        """See ``ClaimStore.correct_budget``."""
        counter = read.model_copy(update={"committed_per_hour": committed_per_hour, "version": read.version + 1})
        item = to_attributes({"claim_id": counter_id(read.cluster, read.node_pool)}) | to_item(counter)
        try:
            self._writer.put(item, unchanged(version=read.version) if read.version else absent("claim_id"))
        except ConditionFailedError:
            return False
        return True

    def _write(self, claim: Claim, condition: Condition, changes: tuple[CounterChange, ...]) -> None:
        item = item_of(claim)
        try:
            if changes:
                self._writer.transact(item, condition, [_counter_update(change) for change in changes])
            else:
                self._writer.put(item, condition)
        except ConditionFailedError as failed:
            if failed.position:
                raise _exhausted(changes[failed.position - 1]) from None
            standing = self.get(claim.claim_id) if failed.standing is None else claim_from(failed.standing)
            raise ConflictError(f"claim {claim.claim_id} moved", standing) from None


def counter_id(cluster: str, node_pool: str) -> str:
    """The key of a NodePool's counter row; never a claim id, which is all hex digits."""
    return f"budget/{cluster}/{node_pool}"


def item_of(claim: Claim) -> Item:
    """A claim as its row, index attributes included."""
    item = to_item(claim)
    derived: dict[str, Any] = {
        "committed_per_hour": claim.committed_per_hour,
        "provider": claim.candidate.provider if claim.candidate else None,
        "instance_id": claim.instance_id,
    }
    if claim.live:
        derived["live_cluster"] = claim.cluster
        derived["due_partition"] = DUE if claim.next_action_at is not None else None
    else:
        derived["expires_at"] = int((claim.updated_at + KEEP_TERMINATED).timestamp())
        derived["former_credential_key"] = claim.credential_key
        item.pop("credential_key", None)
    return item | to_attributes({name: value for name, value in derived.items() if value is not None})


def claim_from(item: Item) -> Claim:
    """A row as the claim it holds. Raises UnreadableClaimError for one that only a newer release can read."""
    row = _row_from(item)
    if isinstance(row, UnreadableClaim):
        raise UnreadableClaimError(row)
    return row


def _row_from(item: Item) -> Claim | UnreadableClaim:
    values = to_values(item)
    values.setdefault("credential_key", values.get("former_credential_key"))
    try:
        return Claim.model_validate(values)
    except ValidationError as error:
        return UnreadableClaim.told_by(values, misfits(error))


def _counter_update(change: CounterChange) -> dict[str, Any]:
    update: dict[str, Any] = {
        "Key": to_attributes({"claim_id": counter_id(change.cluster, change.node_pool)}),
        "UpdateExpression": "SET #cluster = :cluster, #pool = :pool ADD #committed :delta, #version :one",
        "ExpressionAttributeNames": {
            "#cluster": "cluster",
            "#pool": "node_pool",
            "#committed": "committed_per_hour",
            "#version": "version",
        },
    }
    values = {":cluster": change.cluster, ":pool": change.node_pool, ":delta": change.delta, ":one": 1}
    if change.room is not None:
        values[":room"] = change.room
        fits = "#committed <= :room"
        first = "attribute_not_exists(#committed)"
        update["ConditionExpression"] = fits if change.room < 0 else f"{first} OR {fits}"
    return {**update, "ExpressionAttributeValues": to_attributes(values)}


def _exhausted(change: CounterChange) -> BudgetExhaustedError:
    return BudgetExhaustedError(f"NodePool {change.node_pool}: {change.delta} USD/h more exceeds its budget")
