"""Rows hold native types at the top level: no float, no secret, times that sort as text."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nebula.domain.base import StoredModel
from nebula.domain.claim import Phase
from nebula.stores.dynamo_claims import KEEP_TERMINATED, claim_from, item_of
from nebula.stores.dynamo_items import from_item, time_text, to_attributes, to_item, to_values
from pydantic import AwareDatetime, SecretStr

from tests.support.claims import NOW, pending, placed, provisioned, terminated

AWARE = st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-7)), timezone(timedelta(hours=5.5))]))


class Inner(StoredModel):
    amount: Decimal
    note: str | None = None


class Row(StoredModel):
    phase: Phase = Phase.PLACED
    count: int = 0
    flag: bool = False
    price: Decimal = Decimal(0)
    at: AwareDatetime | None = None
    wait: timedelta = timedelta(0)
    inner: Inner | None = None
    many: tuple[Inner, ...] = ()
    words: dict[str, str] = {}
    nullable: str | None = "a default that is not None"


def test_each_type_is_native() -> None:
    row = Row(
        count=3,
        flag=True,
        price=Decimal("2.490"),
        at=NOW,
        wait=timedelta(seconds=90),
        inner=Inner(amount=Decimal(1)),
        many=(Inner(amount=Decimal("0.1"), note="x"),),
        words={"cloud": "SECURE"},
        nullable=None,
    )
    assert to_item(row) == {
        "phase": {"S": "Placed"},
        "count": {"N": "3"},
        "flag": {"BOOL": True},
        "price": {"N": "2.490"},
        "at": {"S": "2026-11-01T12:00:00.250000Z"},
        "wait": {"S": "PT1M30S"},
        "inner": {"M": {"amount": {"N": "1"}}},
        "many": {"L": [{"M": {"amount": {"N": "0.1"}, "note": {"S": "x"}}}]},
        "words": {"M": {"cloud": {"S": "SECURE"}}},
        "nullable": {"NULL": True},
    }
    assert from_item(Row, to_item(row)) == row


@given(price=st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=0, max_value=10**9), at=AWARE)
def test_money_and_time_come_back_exactly(price: Decimal, at: datetime) -> None:
    row = from_item(Row, to_item(Row(price=price, at=at)))
    assert (row.price, row.at) == (price, at)


@given(AWARE, AWARE)
def test_times_sort_as_text(one: datetime, other: datetime) -> None:
    assert (time_text(one) < time_text(other)) == (one < other)


def test_a_naive_time_is_refused() -> None:
    with pytest.raises(ValueError, match="aware"):
        time_text(datetime(2026, 11, 1))  # noqa: DTZ001


@pytest.mark.parametrize("value", [0.1, SecretStr("hunter2"), object(), {"deep": [0.5]}, b"bytes"])
def test_what_has_no_place_in_a_row_is_refused_without_being_shown(value: Any) -> None:
    with pytest.raises(TypeError) as refused:
        to_attributes({"value": value})
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("value", [Decimal("NaN"), Decimal("Infinity"), Decimal("1." + "1" * 40)])
def test_a_number_that_the_table_would_change_is_refused(value: Decimal) -> None:
    with pytest.raises((TypeError, ArithmeticError)):
        to_attributes({"value": value})


def test_an_unknown_attribute_of_a_newer_release_is_ignored() -> None:
    assert from_item(Row, {**to_item(Row()), "of_tomorrow": {"S": "x"}}) == Row()


def test_an_int_enum_is_a_number() -> None:
    class Level(IntEnum):
        HIGH = 2

    assert to_attributes({"level": Level.HIGH}) == {"level": {"N": "2"}}


def test_a_live_claim_carries_its_index_attributes() -> None:
    item = item_of(provisioned(instance_id="i-1", next_action_at=NOW, credential_key="k"))
    assert {name: item[name] for name in ("due_partition", "live_cluster", "instance_id", "credential_key")} == {
        "due_partition": {"S": "due"},
        "live_cluster": {"S": "prod"},
        "instance_id": {"S": "i-1"},
        "credential_key": {"S": "k"},
    }
    assert item["provider"] == {"S": "simulated"}
    assert item["committed_per_hour"] == {"N": "2.50"}
    assert "expires_at" not in item


@pytest.mark.parametrize(
    ("claim", "absent"),
    [
        (pending(), {"due_partition", "instance_id", "credential_key", "provider"}),
        (placed(), {"due_partition", "instance_id", "credential_key"}),
        (
            terminated(provisioned(credential_key="k")),
            {"due_partition", "live_cluster", "instance_id", "credential_key"},
        ),
    ],
)
def test_the_indexes_are_sparse(claim: Any, absent: set[str]) -> None:
    assert absent.isdisjoint(item_of(claim))


def test_a_terminated_claim_stays_400_days_and_remembers_its_credential() -> None:
    claim = terminated(provisioned(credential_key="k"))
    item = item_of(claim)
    assert item["expires_at"] == {"N": str(int((NOW + KEEP_TERMINATED).timestamp()))}
    assert timedelta(days=400) == KEEP_TERMINATED
    assert claim_from(item).credential_key == "k"


def test_no_float_and_no_binary_anywhere_in_a_row() -> None:
    item = item_of(terminated(provisioned(credential_key="k")))
    text = json.dumps(item)
    assert '"B":' not in text

    def walk(value: Any) -> None:
        assert not isinstance(value, float)
        for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            walk(part)

    walk(to_values(item))
