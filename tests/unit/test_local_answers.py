"""The local DynamoDB's answers: byte for byte what moto says by itself, without its search for every value."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.core import serialize
from moto.dynamodb.models.dynamo_type import DynamoType, Item
from moto.dynamodb.models.table import SecondaryIndex

from local import answers

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

SESSION = boto3.session.Session("testing", "testing", region_name="eu-central-1")
INDEX: Any = SecondaryIndex
PROJECT = INDEX.project
VALUE: Any = DynamoType
TABLE = "rows"
ROW: dict[str, Any] = {
    "id": {"S": "a"},
    "part": {"N": "1"},
    "colour": {"S": "röd"},
    "number": {"N": "12345678901234567890.5"},
    "yes": {"BOOL": True},
    "no": {"BOOL": False},
    "nothing": {"NULL": True},
    "strings": {"SS": ["x", "y"]},
    "numbers": {"NS": ["1", "2.5"]},
    "empty text": {"S": ""},
    "empty list": {"L": []},
    "empty map": {"M": {}},
    "nested": {"M": {"list": {"L": [{"S": "x"}, {"M": {"deep": {"N": "1"}}}]}, "of": {"M": {"NULL": {"NULL": True}}}}},
    "named like a type": {"M": {"S": {"S": "S"}, "M": {"M": {}}}},
    "binary": {"B": b"\x00\xff"},
    "binaries": {"BS": [b"\x00", b"\x01"]},
    "binary within": {"L": [{"B": b"\x02"}, {"M": {"b": {"B": b"\x03"}}}]},
}
KEY = {"id": ROW["id"], "part": ROW["part"]}
RED: Any = {"KeyConditionExpression": "colour = :c", "ExpressionAttributeValues": {":c": ROW["colour"]}}


@pytest.fixture(autouse=True)
def _moto_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serialize, "SERVICE_SPECIFIC_SERIALIZERS", dict(serialize.SERVICE_SPECIFIC_SERIALIZERS))
    monkeypatch.setattr(answers, "SERVICE_SPECIFIC_SERIALIZERS", serialize.SERVICE_SPECIFIC_SERIALIZERS)
    monkeypatch.setattr(INDEX, "project", PROJECT)
    for owner, method in ((VALUE, "size"), (VALUE, "__deepcopy__"), (Item, "__init__")):
        monkeypatch.setattr(owner, method, getattr(owner, method))


@contextmanager
def account() -> Iterator[DynamoDBClient]:
    """A table with an index of each projection, and one row with a value of every type."""
    with mock_aws():
        client = SESSION.client("dynamodb")
        projections: dict[str, Any] = {
            "all": {"ProjectionType": "ALL"},
            "keys": {"ProjectionType": "KEYS_ONLY"},
            "some": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["number", "nested", "binary", "absent"]},
        }
        indexes: Any = [
            {"IndexName": name, "KeySchema": [{"AttributeName": "colour", "KeyType": "HASH"}], "Projection": projection}
            for name, projection in projections.items()
        ]
        client.create_table(
            TableName=TABLE,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}, {"AttributeName": "part", "KeyType": "RANGE"}],
            AttributeDefinitions=[
                {"AttributeName": "id", "AttributeType": "S"},
                {"AttributeName": "part", "AttributeType": "N"},
                {"AttributeName": "colour", "AttributeType": "S"},
            ],
            GlobalSecondaryIndexes=indexes,
        )
        client.put_item(TableName=TABLE, Item=ROW)
        client.put_item(TableName=TABLE, Item={**ROW, "part": {"N": "2"}})
        yield client


Call = Callable[["DynamoDBClient"], Any]
CALLS: dict[str, Call] = {
    "one row": lambda client: client.get_item(TableName=TABLE, Key=KEY),
    "part of a row": lambda client: client.get_item(TableName=TABLE, Key=KEY, ProjectionExpression="nested.list, id"),
    "no row": lambda client: client.get_item(TableName=TABLE, Key={**KEY, "part": {"N": "9"}}),
    "rows by key": lambda client: client.batch_get_item(RequestItems={TABLE: {"Keys": [KEY]}}),
    "the table": lambda client: client.scan(TableName=TABLE),
    "a page": lambda client: client.scan(TableName=TABLE, Limit=1),
    "a partition": lambda client: client.query(
        TableName=TABLE, KeyConditionExpression="id = :i", ExpressionAttributeValues={":i": ROW["id"]}
    ),
    "a page of an index": lambda client: client.query(TableName=TABLE, IndexName="some", Limit=1, **RED),
    "an index scanned": lambda client: client.scan(TableName=TABLE, IndexName="some"),
    "what a write replaced": lambda client: client.put_item(
        TableName=TABLE, Item={**KEY, "new": {"S": "x"}}, ReturnValues="ALL_OLD"
    ),
    "what an update left": lambda client: client.update_item(
        TableName=TABLE,
        Key=KEY,
        UpdateExpression="SET yes = :no",
        ExpressionAttributeValues={":no": {"BOOL": False}},
        ReturnValues="ALL_NEW",
    ),
    "what stood in the way": lambda client: client.put_item(
        TableName=TABLE,
        Item=ROW,
        ConditionExpression="attribute_not_exists(id)",
        ReturnValuesOnConditionCheckFailure="ALL_OLD",
    ),
    "why a transaction was refused": lambda client: client.transact_write_items(
        TransactItems=[
            {
                "Put": {
                    "TableName": TABLE,
                    "Item": ROW,
                    "ConditionExpression": "attribute_not_exists(id)",
                    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                }
            }
        ]
    ),
}


def _of_index(name: str) -> Call:
    return lambda client: client.query(TableName=TABLE, IndexName=name, **RED)


CALLS |= {f"the index of {name}": _of_index(name) for name in ("all", "keys", "some")}


def told(call: Call) -> dict[str, Any]:
    """What a call brought, errors included, as the client read it."""
    with account() as client:
        try:
            got = dict(call(client))
        except ClientError as error:
            got = dict(error.response)
    got.pop("ResponseMetadata")
    return got


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_answer_is_motos_own(call: Call) -> None:
    by_moto = told(call)
    answers.install()
    ours = told(call)
    assert sorted_sets(ours) == sorted_sets(by_moto)


def sorted_sets(value: Any) -> str:
    """A value for comparison: the order of a set's members, and of a map's, says nothing."""

    def plain(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: sorted(map(repr, v)) if key in ("SS", "NS", "BS") else plain(v) for key, v in part.items()}
        return [plain(each) for each in part] if isinstance(part, list) else repr(part)

    return json.dumps(plain(value), sort_keys=True)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("spare", [0, -1])
def test_a_row_is_as_large_as_moto_lets_it_be(spare: int, first: bool) -> None:
    small = {**KEY, "text": {"S": "ö"}}
    room = 405_000 - len("idapart1textbig") - 2 - spare
    big = {"big": {"S": "x" * room}}
    row: Any = {**big, **small} if first else {**small, **big}

    def stored(client: DynamoDBClient) -> Any:
        client.put_item(TableName=TABLE, Item=row)
        return client.get_item(TableName=TABLE, Key=KEY)

    by_moto = told(stored)
    answers.install()
    assert told(stored) == by_moto
    assert ("Item" in by_moto) is (spare == 0)


def test_no_value_of_a_row_is_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []
    search = serialize.AttributePicker.__call__

    def counted(picker: serialize.AttributePicker, context: serialize.AttributePickerContext) -> Any:
        searched.append(context.key)
        return search(picker, context)

    answers.install()
    with account() as client:
        plain = {f"field {number}": {"L": [{"S": "x"}, {"N": "1"}]} for number in range(50)}
        client.put_item(TableName=TABLE, Item={**KEY, **plain})
        monkeypatch.setattr(serialize.AttributePicker, "__call__", counted)
        assert client.get_item(TableName=TABLE, Key=KEY)["Item"] == {**KEY, **plain}
    assert 0 < len(searched) < 10


def test_a_projection_leaves_the_row_whole() -> None:
    answers.install()
    with account() as client:
        client.query(TableName=TABLE, IndexName="keys", **RED)
        assert client.get_item(TableName=TABLE, Key=KEY)["Item"].keys() == ROW.keys()


def test_a_value_measures_what_moto_measures() -> None:
    values = {name: VALUE(value) for name, value in ROW.items()}
    by_moto = {name: value.size() for name, value in values.items()}
    answers.install()
    assert {name: value.size() for name, value in values.items()} == by_moto
    assert by_moto["nested"] > by_moto["colour"] > 0


def test_a_copy_shares_nothing_that_can_change() -> None:
    answers.install()
    whole = VALUE({"M": ROW})
    same = copy.deepcopy(whole)
    assert same == whole
    text = repr(whole)
    for name in ("strings", "numbers", "binaries"):
        same.value[name].value.append("another")
    same.value["nested"].value["list"].value.pop()
    same.value["nested"].value["of"].value.clear()
    same.value["binary within"].value[1].value["b"] = VALUE({"S": "x"})
    same.value["colour"] = VALUE({"S": "x"})
    assert repr(whole) == text
