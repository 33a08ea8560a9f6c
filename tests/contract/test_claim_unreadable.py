"""What every claims ledger does with a row that only a newer release can read: the others go on."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from nebula.domain.claim import Phase
from nebula.domain.unreadable import UnreadableClaim, UnreadableClaimError
from nebula.stores.claims import ClaimStore
from nebula.stores.memory_claims import MemoryClaimStore

from tests.support.claims import CLUSTER, NOW, POOL, SECOND, pending, placed, provisioned

KEY = "runpod/acct/abc/1"
MakeNewer = Callable[..., None]


@pytest.fixture
def make_newer(claims: ClaimStore, request: pytest.FixtureRequest) -> MakeNewer:
    """Turns a row into one that a newer release wrote: a word of its own, in the phase if one is given."""
    if isinstance(claims, MemoryClaimStore):
        return claims.make_newer
    client = request.getfixturevalue("dynamodb")

    def rewrite(claim_id: str, phase: str = "") -> None:
        path = {"#part": "phase"} if phase else {"#whole": "shape", "#part": "cpu"}
        client.update_item(
            TableName="claims",
            Key={"claim_id": {"S": claim_id}},
            UpdateExpression=f"SET {'.'.join(path)} = :new",
            ExpressionAttributeNames=path,
            ExpressionAttributeValues={":new": {"S": phase or "a share"}},
        )

    return rewrite


def told(rows: list[UnreadableClaim]) -> list[tuple[Any, ...]]:
    return [(row.claim_id, row.cluster, row.node_pool, row.provider, row.committed_per_hour) for row in rows]


@pytest.mark.parametrize("phase", ["", "Hibernating"], ids=["a field", "the phase"])
def test_a_list_goes_on_without_it_and_tells_of_it(claims: ClaimStore, make_newer: MakeNewer, phase: str) -> None:
    other = claims.create(provisioned("other", "i-2"))
    newer = claims.create(provisioned("newer", "i-1"))
    make_newer(newer.claim_id, phase)
    unreadable: list[UnreadableClaim] = []
    assert list(claims.live(CLUSTER, unreadable)) == [other]
    assert told(unreadable) == [(newer.claim_id, CLUSTER, POOL, "simulated", Decimal("2.50"))]
    assert unreadable[0].problem
    assert claims.any_live(CLUSTER)


def test_whoever_does_not_ask_for_such_rows_is_not_given_the_rest(claims: ClaimStore, make_newer: MakeNewer) -> None:
    claims.create(pending("other"))
    make_newer(claims.create(pending("newer")).claim_id)
    with pytest.raises(UnreadableClaimError):
        list(claims.live(CLUSTER))


def test_it_is_never_taken_for_no_claim(claims: ClaimStore, make_newer: MakeNewer) -> None:
    newer = claims.create(provisioned("newer", "i-1"))
    make_newer(newer.claim_id)
    with pytest.raises(UnreadableClaimError, match=newer.claim_id) as raised:
        claims.get(newer.claim_id)
    assert raised.value.row.claim_id == newer.claim_id
    with pytest.raises(UnreadableClaimError):
        claims.find_by_instance("i-1")


def test_it_is_not_replaced(claims: ClaimStore, make_newer: MakeNewer) -> None:
    newer = claims.create(placed("newer"))
    make_newer(newer.claim_id, "Hibernating")
    with pytest.raises(UnreadableClaimError):
        claims.create(pending("newer"))
    with pytest.raises(UnreadableClaimError):
        claims.save(newer, pending("newer"))
    assert claims.budget(CLUSTER, POOL).committed_per_hour == Decimal("2.50")


def test_a_credential_that_it_carries_is_in_use(claims: ClaimStore, make_newer: MakeNewer) -> None:
    newer = claims.create(provisioned("newer", "i-1", credential_key=KEY))
    other = claims.create(provisioned("other", "i-2", credential_key=KEY))
    make_newer(newer.claim_id)
    assert {row.claim_id for row in claims.find_by_credential(KEY)} == {newer.claim_id, other.claim_id}


def test_what_it_owes_is_told_with_its_phase_and_can_be_put_off(claims: ClaimStore, make_newer: MakeNewer) -> None:
    newer = claims.create(placed("newer", next_action_at=NOW - SECOND))
    other = claims.create(placed("other", next_action_at=NOW))
    make_newer(newer.claim_id, "Hibernating")
    first, second = claims.due(NOW)
    assert (first.claim_id, first.phase) == (newer.claim_id, "Hibernating")
    assert (second.claim_id, second.phase) == (other.claim_id, Phase.PLACED)
    assert isinstance(second.phase, Phase)
    assert claims.touch(first, NOW + SECOND)
    assert [due.claim_id for due in claims.due(NOW)] == [other.claim_id]
