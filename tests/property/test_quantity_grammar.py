"""Quantities: the grammar of the API server, exactly, against an independent reading of it."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nebula.kubernetes.quantity import MAX, InvalidQuantityError, ceil_to, parse_quantity

FACTORS = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{suffix: Fraction(10 ** (3 * power)) for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Fraction(2 ** (10 * power)) for power, suffix in enumerate("KMGTPE", start=1)},
}
NANO = 10**9

numbers = st.one_of(
    st.integers(0, 10**12).map(str),
    st.tuples(st.integers(0, 10**9), st.text("0123456789", min_size=0, max_size=12)).map(lambda p: f"{p[0]}.{p[1]}"),
    st.text("0123456789", min_size=1, max_size=12).map(lambda digits: f".{digits}"),
)
suffixes = st.one_of(
    st.sampled_from(sorted(FACTORS)),
    st.tuples(st.sampled_from("eE"), st.integers(-30, 30)).map(lambda p: f"{p[0]}{p[1]}"),
)


def expected(number: str, suffix: str) -> Fraction:
    """Rounded up to nano and capped, by integer arithmetic only."""
    factor = FACTORS.get(suffix)
    if factor is None:
        factor = Fraction(10) ** int(suffix[1:])
    value = Fraction(number if number[-1] != "." else number[:-1]) * factor
    nanos = -((-value.numerator * NANO) // value.denominator)
    return min(Fraction(nanos, NANO), Fraction(int(MAX)))


@given(numbers, suffixes, st.sampled_from(["", "+", "-"]))
def test_every_text_of_the_grammar_has_its_exact_value(number: str, suffix: str, sign: str) -> None:
    value = expected(number, suffix)
    assert Fraction(parse_quantity(f"{sign}{number}{suffix}")) == (-value if sign == "-" else value)


@given(st.integers(0, 2**63 - 1))
def test_a_plain_number_is_itself_as_text_and_as_a_number(value: int) -> None:
    assert parse_quantity(str(value)) == parse_quantity(value) == value


@given(st.text(max_size=24))
def test_any_other_text_is_refused_and_nothing_else_is_raised(text: str) -> None:
    try:
        value = parse_quantity(text)
    except InvalidQuantityError:
        return
    assert text[0] in "+-.0123456789"
    assert abs(value) <= MAX


@given(st.decimals(0, 10**15, places=9), st.sampled_from([Decimal(1), Decimal("0.001"), Decimal(10**9)]))
def test_rounding_up_reaches_the_next_multiple_and_no_further(value: Decimal, unit: Decimal) -> None:
    rounded = ceil_to(value, unit)
    assert rounded % unit == 0
    assert value <= rounded < value + unit


@pytest.mark.parametrize(
    ("text", "value"),
    [("1E", 10**18), ("1E3", 1000), ("1e3", 1000), ("100m", "0.1"), ("1Ki", 1024), (".5Gi", 2**29), ("8Ei", int(MAX))],
)
def test_the_pitfalls_of_the_grammar(text: str, value: str | int) -> None:
    assert parse_quantity(text) == Decimal(value)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "K",
        "1K",
        "1MB",
        "1ki",
        "1 Gi",
        "1Gi ",
        "1e",
        "e3",
        "1e1.5",
        "1Ei3",
        "0x10",
        "1_000",
        "١",
        "1e9999",
        ".",
        "--1",
    ],
)
def test_what_is_no_quantity(value: str) -> None:
    with pytest.raises(InvalidQuantityError):
        parse_quantity(value)


@pytest.mark.parametrize("value", [True, None, [], {}, b"1", float("nan"), float("inf")])
def test_what_is_not_even_a_number(value: object) -> None:
    with pytest.raises(InvalidQuantityError):
        parse_quantity(value)


def test_a_number_of_hand_written_yaml_keeps_its_decimal_digits() -> None:
    assert parse_quantity(0.1) == Decimal("0.1")
