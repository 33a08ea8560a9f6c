"""The local DynamoDB's transactions: moto's own answers, nothing left of a refused one, at the price of the rows."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import DynamoDBBackend, dynamodb_backends
from moto.dynamodb.models.dynamo_type import Item
from moto.dynamodb.models.table import Table

from local import transactions

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MODELS: tuple[Any, ...] = (Table, Item)
BACKEND: Any = DynamoDBBackend
MOTO = BACKEND.transact_write_items
SESSION = boto3.session.Session("testing", "testing", region_name="eu-central-1")
ROWS, PAIRS = "rows", "pairs"
Answer = tuple[Any, ...]


@pytest.fixture(autouse=True)
def _moto_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BACKEND, "transact_write_items", MOTO)
    for model in MODELS:
        monkeypatch.setattr(model, "instances_tracked", [])


@contextmanager
def account(*, ours: bool) -> Iterator[DynamoDBClient]:
    """Two tables, one with a range key, both with a stream, and an index on the first; rows in both."""
    BACKEND.transact_write_items = MOTO
    if ours:
        transactions.install()
    with mock_aws():
        client = SESSION.client("dynamodb")
        stream: Any = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
        index: Any = {
            "IndexName": "by-colour",
            "KeySchema": [{"AttributeName": "colour", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
        client.create_table(
            TableName=ROWS,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[
                {"AttributeName": "id", "AttributeType": "S"},
                {"AttributeName": "colour", "AttributeType": "S"},
            ],
            GlobalSecondaryIndexes=[index],
            StreamSpecification=stream,
        )
        client.create_table(
            TableName=PAIRS,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[
                {"AttributeName": "id", "KeyType": "HASH"},
                {"AttributeName": "part", "KeyType": "RANGE"},
            ],
            AttributeDefinitions=[
                {"AttributeName": "id", "AttributeType": "S"},
                {"AttributeName": "part", "AttributeType": "N"},
            ],
            StreamSpecification=stream,
        )
        for name in ("a", "b"):
            client.put_item(TableName=ROWS, Item=row(name, 1))
            client.put_item(TableName=PAIRS, Item=pair(name, 1))
        yield client


def row(name: str, version: int) -> dict[str, Any]:
    return {"id": {"S": name}, "version": {"N": str(version)}, "colour": {"S": "red"}, "of": {"M": {"x": {"L": []}}}}


def pair(name: str, version: int) -> dict[str, Any]:
    return {"id": {"S": name}, "part": {"N": "1"}, "version": {"N": str(version)}}


def key_of(table: str, name: str) -> dict[str, Any]:
    return {"id": {"S": name}} if table == ROWS else {"id": {"S": name}, "part": {"N": "1"}}


def put(table: str, name: str, version: int, **more: Any) -> dict[str, Any]:
    item = row(name, version) if table == ROWS else pair(name, version)
    return {"Put": {"TableName": table, "Item": item, **more}}


def update(table: str, name: str, expression: str = "SET #v = #v + :one", **more: Any) -> dict[str, Any]:
    names, values = {"#v": "version"}, {":one": {"N": "1"}, **more.pop("values", {})}
    parts = {"UpdateExpression": expression, "ExpressionAttributeNames": names, "ExpressionAttributeValues": values}
    return {"Update": {"TableName": table, "Key": key_of(table, name), **parts, **more}}


def delete(table: str, name: str, **more: Any) -> dict[str, Any]:
    return {"Delete": {"TableName": table, "Key": key_of(table, name), **more}}


def check(table: str, name: str, *, there: bool, **more: Any) -> dict[str, Any]:
    function = "attribute_exists" if there else "attribute_not_exists"
    parts = {"ConditionExpression": f"{function}(id)", **more}
    return {"ConditionCheck": {"TableName": table, "Key": key_of(table, name), **parts}}


ALL_OLD = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
REFUSED = check(ROWS, "a", there=False, **ALL_OLD)
NAMED: dict[str, list[dict[str, Any]]] = {
    "writes of every kind in two tables": [
        put(ROWS, "new", 1, ConditionExpression="attribute_not_exists(id)"),
        update(ROWS, "a"),
        delete(PAIRS, "a"),
        check(PAIRS, "b", there=True),
    ],
    "a row that was there, whole again": [put(ROWS, "a", 7), put(PAIRS, "a", 7)],
    "refused after writes in two tables": [
        put(ROWS, "new", 1),
        put(PAIRS, "new", 1),
        update(ROWS, "b"),
        update(PAIRS, "b", "SET #v = #v + :one, more = :one"),
        delete(PAIRS, "a"),
        REFUSED,
    ],
    "refused before its writes": [REFUSED, put(ROWS, "new", 1), delete(ROWS, "b")],
    "two refusals": [REFUSED, check(PAIRS, "none", there=True, **ALL_OLD), put(ROWS, "new", 1)],
    "an update that makes a row": [update(ROWS, "new", "SET #v = :one"), update(PAIRS, "new", "SET #v = :one")],
    "a nested value set": [update(ROWS, "a", "SET #v = :one, #v2.x = :l", values={":l": {"L": [{"S": "deep"}]}})],
    "one row twice": [put(ROWS, "new", 1), update(ROWS, "a"), update(ROWS, "a")],
    "deletes of what is not there": [delete(ROWS, "none"), delete(PAIRS, "none")],
    "no such table": [put(ROWS, "new", 1), {"Delete": {"TableName": "none", "Key": {"id": {"S": "a"}}}}],
    "a key of half its parts": [put(ROWS, "new", 1), {"Delete": {"TableName": PAIRS, "Key": {"id": {"S": "a"}}}}],
    "a key of another type": [put(ROWS, "new", 1), {"Put": {"TableName": ROWS, "Item": {"id": {"N": "1"}}}}],
    "a key that cannot be one": [
        put(ROWS, "new", 1),
        {
            "ConditionCheck": {
                "TableName": ROWS,
                "Key": {"id": {"L": []}},
                "ConditionExpression": "attribute_exists(id)",
            }
        },
    ],
    "an item too large": [
        put(ROWS, "new", 1),
        {"Put": {"TableName": ROWS, "Item": {**row("b", 2), "big": {"S": "x" * 410_000}}}},
    ],
    "more than a hundred": [put(ROWS, f"n{number}", 1) for number in range(101)],
    "an update of a missing attribute": [update(PAIRS, "b"), update(ROWS, "none")],
}
NAMED["a nested value set"][0]["Update"]["ExpressionAttributeNames"]["#v2"] = "of"


def answer(client: DynamoDBClient, items: list[dict[str, Any]]) -> Answer:
    """What the caller gets, the error's reasons included."""
    try:
        sent: Any = copy.deepcopy(items)
        got = client.transact_write_items(TransactItems=sent)
    except ClientError as error:
        response: Any = error.response
        return (response["Error"], response.get("CancellationReasons"))
    return (got["ResponseMetadata"]["HTTPStatusCode"], {name for name in got if name != "ResponseMetadata"})


def contents(client: DynamoDBClient) -> dict[str, Any]:
    """All that can be read: tables, index, and what the streams tell in order."""
    read: dict[str, Any] = {name: client.scan(TableName=name)["Items"] for name in (ROWS, PAIRS)}
    read["index"] = client.query(
        TableName=ROWS,
        IndexName="by-colour",
        KeyConditionExpression="colour = :red",
        ExpressionAttributeValues={":red": {"S": "red"}},
    )["Items"]
    told = ("SequenceNumber", "Keys", "NewImage", "OldImage")
    tables: dict[str, Any] = dynamodb_backends[DEFAULT_ACCOUNT_ID]["eu-central-1"].tables
    for name, table in tables.items():
        records = [record.to_json() for record in table.stream_shard.items]
        read[f"stream of {name}"] = [
            json.dumps([record["eventName"], *(record["dynamodb"].get(part) for part in told)], default=repr)
            for record in records
        ]
    return read


def lived(ours: bool, several: list[list[dict[str, Any]]]) -> list[tuple[Answer, dict[str, Any]]]:
    """Transactions one after the other: each one's answer, and what is there afterwards."""
    with account(ours=ours) as client:
        return [(answer(client, items), contents(client)) for items in several]


@pytest.mark.parametrize("items", NAMED.values(), ids=NAMED)
def test_answers_and_tables_are_motos_own(items: list[dict[str, Any]]) -> None:
    assert lived(True, [items]) == lived(False, [items])


def test_transactions_drawn_by_lot_end_as_motos_do() -> None:
    drawn = random.Random(4)
    makers: list[Callable[[str, str], dict[str, Any]]] = [
        lambda table, name: put(table, name, drawn.randrange(9)),
        lambda table, name: put(table, name, 1, ConditionExpression="attribute_not_exists(id)", **ALL_OLD),
        update,
        delete,
        lambda table, name: check(table, name, there=drawn.random() < 0.7, **ALL_OLD),
    ]

    def one() -> list[dict[str, Any]]:
        places = [(table, name) for table in (ROWS, PAIRS) for name in "abcd"]
        return [drawn.choice(makers)(*place) for place in drawn.sample(places, drawn.randrange(1, 4))]

    several = [one() for _ in range(24)]
    ours = lived(True, several)
    accepted = sum(told[0] == 200 for told, _ in ours)
    assert 4 < accepted < 20
    assert ours == lived(False, several)


@pytest.mark.parametrize(
    "last", [REFUSED, update(ROWS, "a"), delete(ROWS, "none", ConditionExpression="attribute_exists(id)")]
)
def test_a_refused_transaction_leaves_everything_as_it_was(last: dict[str, Any]) -> None:
    with account(ours=True) as client:
        before = contents(client)
        writes = [
            put(ROWS, "new", 1),
            put(PAIRS, "new", 1),
            put(ROWS, "b", 9),
            delete(PAIRS, "a"),
            update(PAIRS, "b"),
            update(ROWS, "a"),
        ]
        told = answer(client, [*writes, last])
        assert told[0] != 200
        assert contents(client) == before


def test_what_others_wrote_to_other_rows_meanwhile_stays() -> None:
    """moto's way back is the whole table as it was; this one touches no row that the transaction does not name."""
    with account(ours=True) as client:
        backend = dynamodb_backends[DEFAULT_ACCOUNT_ID]["eu-central-1"]
        stood = backend.tables[ROWS]
        assert answer(client, [put(ROWS, "new", 1), REFUSED])[0]["Code"] == "TransactionCanceledException"
        assert backend.tables[ROWS] is stood


def test_the_price_is_that_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    with account(ours=True) as client:
        table = dynamodb_backends[DEFAULT_ACCOUNT_ID]["eu-central-1"].tables[ROWS]
        for number in range(200):
            table.put_item(row(f"other-{number}", 1))
        copied: list[Any] = []
        honest = Item.__deepcopy__

        def counted(item: Item, memo: dict[int, Any]) -> Item:
            copied.append(item)
            return honest(item, memo)

        monkeypatch.setattr(Item, "__deepcopy__", counted)
        assert answer(client, [update(ROWS, "a"), put(ROWS, "new", 1)])[0] == 200
        assert 0 < len(copied) < 10


def test_rows_that_are_gone_are_kept_nowhere() -> None:
    with account(ours=True) as client:
        assert answer(client, [update(ROWS, "a"), put(ROWS, "new", 1)])[0] == 200
        assert [model.instances_tracked for model in MODELS] == [[], []]
