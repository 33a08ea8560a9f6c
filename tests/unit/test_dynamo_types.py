"""The wire form of plain values is the one that AWS's own library writes and reads."""

from __future__ import annotations

from decimal import Decimal, Inexact, Overflow
from typing import Any

import pytest
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from hypothesis import given
from hypothesis import strategies as st
from nebula.stores.dynamo_types import decode, encode

NUMBERS = st.integers(-(10**37), 10**37) | st.decimals(
    allow_nan=False, allow_infinity=False, places=6, min_value=-(10**12), max_value=10**12
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.text() | NUMBERS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_it_reads_and_writes_what_the_library_does(value: Any) -> None:
    encoded = encode(value)
    assert encoded == TypeSerializer().serialize(value)
    assert decode(encoded) == TypeDeserializer().deserialize(encoded) == value


@pytest.mark.parametrize(
    "value", [1.5, b"x", {"a"}, object(), Decimal("NaN"), Decimal("Infinity"), Decimal("-Infinity")]
)
def test_what_has_no_place_in_a_row_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        encode([value])


@pytest.mark.parametrize(("value", "error"), [(Decimal("1" * 39), Inexact), (Decimal("1E+127"), Overflow)])
def test_no_number_is_rounded(value: Decimal, error: type[Exception]) -> None:
    with pytest.raises(error):
        encode(value)


@pytest.mark.parametrize("attribute", [{}, {"SS": ["a"]}, {"B": b"x"}, {"S": "a", "N": "1"}])
def test_an_attribute_of_another_kind_is_refused(attribute: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        decode(attribute)
