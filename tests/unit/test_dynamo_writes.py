"""What a refused write means, and how often it is tried again."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from botocore.exceptions import ClientError
from nebula.stores.claims import BudgetExhaustedError, ConflictError, LedgerBusyError
from nebula.stores.dynamo_claims import DynamoClaimStore, item_of
from nebula.stores.dynamo_reads import MAX_BATCH_ROUNDS
from nebula.stores.dynamo_writes import LONGEST_PAUSE_SECONDS, MAX_TRIES

from tests.support.aws_stubs import stubbed
from tests.support.claims import NOW, pending, placed, provisioned

BUSY: dict[str, Any] = {"Code": "TransactionConflict", "Message": "held"}
FAILED: dict[str, Any] = {"Code": "ConditionalCheckFailed", "Message": "no"}
FINE: dict[str, Any] = {"Code": "None"}


class Ledger:
    """A store over a scripted client, and what it did."""

    def __init__(self) -> None:
        self.client, self.script = stubbed("dynamodb")
        self.pauses: list[float] = []
        self.store = DynamoClaimStore(self.client, "claims", sleep=self.pauses.append, chance=lambda: 1.0)
        self.sent: list[dict[str, Any]] = []
        self.client.meta.events.register("provide-client-params.dynamodb.*", self._note)

    def _note(self, params: dict[str, Any], **_: object) -> None:
        self.sent.append(params)

    def cancel(self, *reasons: dict[str, Any]) -> None:
        self.script.add_client_error(
            "transact_write_items",
            "TransactionCanceledException",
            modeled_fields={"CancellationReasons": list(reasons)},
        )


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def test_a_claim_that_moves_no_money_is_one_plain_put(ledger: Ledger) -> None:
    ledger.script.add_response("put_item", {})
    ledger.store.create(pending())
    (sent,) = ledger.sent
    assert sent["ConditionExpression"] == "attribute_not_exists(#key)"
    assert sent["ReturnValuesOnConditionCheckFailure"] == "ALL_OLD"


def test_a_claim_that_moves_money_is_one_transaction_with_its_counter(ledger: Ledger) -> None:
    ledger.script.add_response("transact_write_items", {})
    ledger.store.save(pending(), placed(reserve="2.5"), budget_limit=Decimal(10))
    put, update = ledger.sent[0]["TransactItems"]
    assert put["Put"]["Item"]["version"] == {"N": "2"}
    assert update["Update"]["Key"] == {"claim_id": {"S": "budget/prod/gpus"}}
    assert update["Update"]["ExpressionAttributeValues"][":room"] == {"N": "7.5"}
    assert update["Update"]["ConditionExpression"] == "attribute_not_exists(#committed) OR #committed <= :room"


def test_held_rows_are_tried_again_with_growing_pauses(ledger: Ledger) -> None:
    for _ in range(3):
        ledger.cancel(FINE, BUSY)
    ledger.script.add_response("transact_write_items", {})
    ledger.store.create(placed())
    assert ledger.pauses == [0.04, 0.08, 0.16]
    tokens = {sent["ClientRequestToken"] for sent in ledger.sent}
    assert len(tokens) == 1


@pytest.mark.parametrize("code", ["TransactionInProgressException", "TransactionConflictException"])
def test_a_row_in_anothers_transaction_is_tried_again(ledger: Ledger, code: str) -> None:
    ledger.script.add_client_error("put_item", code)
    ledger.script.add_response("put_item", {})
    ledger.store.create(pending())
    assert len(ledger.pauses) == 1


def test_it_gives_up_in_the_end_and_says_that_nothing_was_written(ledger: Ledger) -> None:
    for _ in range(MAX_TRIES):
        ledger.cancel(BUSY, FINE)
    with pytest.raises(LedgerBusyError):
        ledger.store.create(placed())
    ledger.script.assert_no_pending_responses()
    assert max(ledger.pauses) == LONGEST_PAUSE_SECONDS
    assert len(ledger.pauses) == MAX_TRIES - 1


def test_the_first_reason_is_a_conflict_with_what_stands(ledger: Ledger) -> None:
    standing = provisioned()
    ledger.cancel({**FAILED, "Item": item_of(standing)}, FAILED)
    with pytest.raises(ConflictError) as conflict:
        ledger.store.save(pending(), placed())
    assert conflict.value.current == standing


def test_the_second_reason_is_the_budget(ledger: Ledger) -> None:
    ledger.cancel(FINE, FAILED)
    with pytest.raises(BudgetExhaustedError, match="gpus"):
        ledger.store.save(pending(), placed(), budget_limit=Decimal(1))


def test_a_conflict_among_busy_rows_is_a_conflict(ledger: Ledger) -> None:
    ledger.cancel({**FAILED, "Item": item_of(provisioned())}, BUSY)
    with pytest.raises(ConflictError):
        ledger.store.save(pending(), placed())


def test_what_stands_is_read_when_the_answer_does_not_hold_it(ledger: Ledger) -> None:
    ledger.script.add_client_error("put_item", "ConditionalCheckFailedException")
    ledger.script.add_response("get_item", {"Item": item_of(provisioned())})
    with pytest.raises(ConflictError) as conflict:
        ledger.store.create(pending())
    assert conflict.value.current == provisioned()


@pytest.mark.parametrize("code", ["ValidationError", "ItemCollectionSizeLimitExceeded"])
def test_any_other_cancellation_is_raised_as_it_is(ledger: Ledger, code: str) -> None:
    ledger.cancel({"Code": code}, FINE)
    with pytest.raises(ClientError):
        ledger.store.create(placed())


def test_any_other_error_is_raised_as_it_is(ledger: Ledger) -> None:
    ledger.script.add_client_error("put_item", "AccessDeniedException")
    with pytest.raises(ClientError, match="AccessDenied"):
        ledger.store.create(pending())


def test_our_own_row_after_a_lost_answer_is_success(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with_own_row(ledger, monkeypatch)
    assert ledger.store.create(pending()) == pending()


def test_an_equal_row_of_somebody_else_is_a_conflict(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with_own_row(ledger, monkeypatch, write_id="of-another-worker")
    with pytest.raises(ConflictError):
        ledger.store.create(pending())


def answer_with_own_row(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, write_id: str | None = None) -> None:
    """The condition fails on the row that was just sent, as when the SDK repeats a write whose answer was lost."""

    def put_item(**sent: Any) -> None:
        row = sent["Item"] if write_id is None else {**sent["Item"], "write_id": {"S": write_id}}
        error: Any = {"Error": {"Code": "ConditionalCheckFailedException", "Message": ""}, "Item": row}
        raise ClientError(error, "PutItem")

    monkeypatch.setattr(ledger.client, "put_item", put_item)


def test_unread_keys_are_asked_for_again_and_not_for_ever(ledger: Ledger) -> None:
    keys = [{"claim_id": {"S": "a" * 32}}]
    found = {"Items": keys, "Count": 1, "ScannedCount": 1}
    missed = {"Responses": {}, "UnprocessedKeys": {"claims": {"Keys": keys}}}
    row = {"Responses": {"claims": [item_of(placed(credential_key="k"))]}, "UnprocessedKeys": {}}
    ledger.script.add_response("query", found)
    ledger.script.add_response("batch_get_item", missed)
    ledger.script.add_response("batch_get_item", row)
    assert len(ledger.store.find_by_credential("k")) == 1
    ledger.script.add_response("query", found)
    for _ in range(MAX_BATCH_ROUNDS):
        ledger.script.add_response("batch_get_item", missed)
    with pytest.raises(LedgerBusyError):
        ledger.store.find_by_credential("k")


def test_a_stale_index_entry_is_not_believed(ledger: Ledger) -> None:
    moved = provisioned(instance_id="i-2", credential_key="other")
    entry = {"Items": [{"claim_id": {"S": moved.claim_id}}], "Count": 1, "ScannedCount": 1}
    ledger.script.add_response("query", entry)
    ledger.script.add_response("get_item", {"Item": item_of(moved)})
    assert ledger.store.find_by_instance("i-1") is None
    ledger.script.add_response("query", entry)
    ledger.script.add_response("batch_get_item", {"Responses": {"claims": [item_of(moved)]}})
    assert ledger.store.find_by_credential("k") == []


def test_reads_by_key_are_strong_and_index_reads_ask_for_their_index(ledger: Ledger) -> None:
    ledger.script.add_response("get_item", {})
    ledger.script.add_response("query", {"Items": [], "Count": 0, "ScannedCount": 0})
    ledger.store.get("a" * 32)
    ledger.store.due(NOW)
    get, query = ledger.sent
    assert get["ConsistentRead"] is True
    assert (query["IndexName"], query["ScanIndexForward"], query["Limit"]) == ("due", True, 200)
