"""What the ledgers ask of DynamoDB: no more writes than they owe, and nothing that no role allows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from nebula.domain.claim import Phase
from nebula.domain.credential import Credential, CredentialKey
from nebula.stores.blocks import Block
from nebula.stores.dynamo_blocks import DynamoBlockStore
from nebula.stores.dynamo_claims import DynamoClaimStore
from nebula.stores.dynamo_credentials import DynamoCredentialStore
from nebula.stores.dynamo_sightings import DynamoSightingStore

from tests.support.claims import CLUSTER, NOW, POOL, SECOND, attempt, pending, placed, provisioned, terminated
from tests.support.cloudformation import ROLES, allowed
from tests.support.dynamo_calls import DynamoCalls, count_calls
from tests.support.tables import TABLES

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def live_and_die(store: DynamoClaimStore) -> None:
    """The moves of one undisturbed life."""
    claim = store.create(pending())
    claim = store.save(claim, placed(next_action_at=NOW))
    leased = placed(phase=Phase.PROVISIONING, attempts=(attempt(),), next_action_at=NOW + 120 * SECOND)
    claim = store.save(claim, leased)
    claim = store.save(claim, provisioned(credential_key="k", next_action_at=NOW))
    for phase in (Phase.RELEASING, Phase.RELEASED, Phase.TERMINATING):
        claim = store.save(claim, claim.model_copy(update={"phase": phase}))
    store.save(claim, terminated(claim))


def test_a_life_is_one_write_a_move_and_one_more_when_money_moves(dynamodb: DynamoDBClient) -> None:
    calls = count_calls(dynamodb)
    live_and_die(DynamoClaimStore(dynamodb, "claims"))
    assert calls.operations == {("claims", "PutItem"): 8, ("claims", "UpdateItem"): 2}
    assert calls.item_writes == 10


def test_a_tick_that_finds_nothing_writes_nothing(dynamodb: DynamoDBClient) -> None:
    store, blocks = DynamoClaimStore(dynamodb, "claims"), DynamoBlockStore(dynamodb, "blocks")
    store.create(provisioned())
    calls = count_calls(dynamodb)
    list(store.live(CLUSTER))
    store.any_live(CLUSTER)
    store.due(NOW)
    store.budget(CLUSTER, POOL)
    blocks.active("runpod", NOW)
    assert calls.item_writes == 0


def test_every_action_that_a_ledger_needs_is_allowed_to_some_role(dynamodb: DynamoDBClient) -> None:
    calls = count_calls(dynamodb)
    use_everything(dynamodb)
    granted: dict[str, set[str]] = {}
    for role in ROLES.values():
        for resource, actions in allowed(role, "dynamodb").items():
            granted.setdefault(table_of(resource), set()).update(actions)
    needed = needed_actions(calls)
    missing = {table: actions - granted.get(table, set()) for table, actions in needed.items()}
    assert not any(missing.values()), missing
    assert granted == needed, "a role is granted what no ledger asks for"


def needed_actions(calls: DynamoCalls) -> dict[str, set[str]]:
    needed: dict[str, set[str]] = {}
    for table, action in calls.operations:
        needed.setdefault(table, set()).add(f"dynamodb:{action}")
    return needed


def table_of(resource: str) -> str:
    """``claims`` or ``claims/index/due`` for a logical id or a ``Fn::Sub`` of an index."""
    if resource in TABLES:
        return TABLES[resource]
    written = json.loads(resource)["Fn::Sub"]
    logical, index = written.removeprefix("${").split(".Arn}", 1)
    return TABLES[logical] + str(index)


def use_everything(client: DynamoDBClient) -> None:
    """Call each method of each ledger once."""
    claims = DynamoClaimStore(client, "claims")
    live_and_die(claims)
    claims.create(placed("due", next_action_at=NOW))
    claims.create(pending("other", credential_key="k"))
    claims.touch(claims.due(NOW)[0], NOW + SECOND)
    list(claims.live(CLUSTER))
    claims.find_by_instance("i-1")
    claims.find_by_credential("k")
    claims.correct_budget(claims.budget(CLUSTER, POOL), claims.budget(CLUSTER, POOL).committed_per_hour)
    blocks = DynamoBlockStore(client, "blocks")
    blocks.put(Block(provider="runpod", reason="x", created_at=NOW, expires_at=NOW))
    blocks.active("runpod", NOW)
    blocks.clear("runpod")
    sightings = DynamoSightingStore(client, "blocks")
    sightings.first_seen("orphan/i-1", NOW)
    sightings.known("orphan/i-1", NOW)
    sightings.forget("orphan/i-1")
    credentials = DynamoCredentialStore(client, "credentials")
    key = CredentialKey(provider="runpod", account="a", fingerprint="f", generation=1)
    row = credentials.create(Credential(key=key, registry="r", created_at=NOW, last_used_at=NOW))
    credentials.save(row, row)
    credentials.get(key)
    credentials.latest("runpod", "a", "f")
    list(credentials.all())
