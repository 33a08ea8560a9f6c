"""The shipped price lists: whole, dated, sane."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from importlib.resources import files

import pytest
from nebula.catalog.loader import COLUMNS, CatalogError, Row, Unit, load, parse
from nebula.domain.candidate import CapacityType, Shape
from nebula.placement.sizing import quote

DATA = files("nebula.catalog").joinpath("data")
NAMES = sorted(one.name.removesuffix(".csv") for one in DATA.iterdir() if one.name.endswith(".csv"))
HEADER = ",".join(COLUMNS)
LINE = "gpu-1,H100,1,accelerator-hour,8,,,,OnDemand,2.5,,cloud=SECURE,true,true,somewhere,2026-08-27"


def test_there_is_a_list_for_runpod() -> None:
    assert "runpod" in NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_row_can_be_read_and_says_where_it_is_from(name: str) -> None:
    rows = load(name)
    assert rows
    for row in rows:
        assert row.source
        assert datetime(2026, 1, 1, tzinfo=UTC) <= row.as_of <= datetime(2027, 1, 1, tzinfo=UTC)
        assert row.price is None or Decimal("0.001") < row.price < Decimal(500)
        assert row.instance_type == row.instance_type.strip()


@pytest.mark.parametrize("name", NAMES)
def test_only_what_is_sold_is_offered(name: str) -> None:
    for row in load(name):
        offering = row.offering(name)
        assert (offering is not None) is row.sold
        assert offering is None or (offering.source, offering.as_of) == ("catalog", row.as_of)


@pytest.mark.parametrize("name", NAMES)
def test_a_larger_count_costs_more(name: str) -> None:
    for row in load(name):
        offering = row.offering(name)
        if offering is None or offering.accelerator is None or row.unit is not Unit.ACCELERATOR_HOUR:
            continue
        shapes = [Shape(accelerator=offering.accelerator, accelerator_count=count) for count in (1, 2)]
        one, two = (quote(offering, shape, shape.accelerator_count) for shape in shapes)
        assert one is not None
        assert two is not None
        assert two.gpus == 2 * one.gpus


def test_runpod_sells_no_spot_and_every_gpu_row_names_its_cloud() -> None:
    rows = load("runpod")
    assert {row.capacity_type for row in rows} == {CapacityType.ON_DEMAND}
    for row in rows:
        assert (set(row.parameters) == {"cloud"}) is (row.accelerator is not None)
        assert row.by_default is (row.parameters.get("cloud", "SECURE") == "SECURE")
    assert sum(row.sold for row in rows) > 50


def test_ids_of_one_type_are_walked_and_a_slice_is_a_type_of_its_own() -> None:
    types: dict[str | None, set[str]] = {}
    for row in load("runpod"):
        types.setdefault(row.accelerator, set()).add(row.instance_type)
    assert types["H100"] == {"NVIDIA H100 80GB HBM3", "NVIDIA H100 NVL", "NVIDIA H100 PCIe"}
    assert not any("MIG" in one for one in types["RTXPRO6000"])
    owners: dict[str, set[str | None]] = {}
    for row in load("runpod"):
        owners.setdefault(row.instance_type, set()).add(row.accelerator)
    assert all(len(accelerators) == 1 for accelerators in owners.values())


def read(line: str) -> Row:
    (row,) = parse(["# a comment", "", HEADER, line], "test.csv")
    return row


def test_a_row_is_read_in_full() -> None:
    row = read(LINE)
    assert (row.accelerator, row.price, row.parameters, row.max_count) == (
        "H100",
        Decimal("2.5"),
        {"cloud": "SECURE"},
        8,
    )
    offering = row.offering("x", disk_price_per_gb_hour=Decimal("0.1"), default_disk_gb=7)
    assert offering is not None
    assert offering.per_accelerator
    assert offering.rented_disk_gb(Shape()) == 7


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("2.5", "", "sold without a price"),
        ("2.5", "0", "sold without a price"),
        ("2.5", "-1", "sold without a price"),
        ("2.5", "cheap", "test.csv:4"),
        ("H100", "h100", "upper case"),
        ("H100,1", "H100,0", "disagree"),
        (",H100,1", ",,1", "disagree"),
        ("H100,1,accelerator-hour", "H100,8,accelerator-hour", "one accelerator"),
        ("accelerator-hour", "vcpu-hour", "memory_gib_per_vcpu"),
        ("accelerator-hour", "month", "month"),
        ("OnDemand", "Reserved", "Reserved"),
        ("true,true", "true,yes", "not true or false"),
        ("cloud=SECURE", "cloud", "name=value"),
        ("somewhere", "", "source is empty"),
        ("2026-08-27", "2026-08", "test.csv:4"),
        ("gpu-1", "", "instance_type is empty"),
        (",2026-08-27", "", "test.csv:4"),
    ],
)
def test_a_bad_row_is_refused_with_its_place(old: str, new: str, word: str) -> None:
    assert old in LINE
    with pytest.raises(CatalogError, match=word) as caught:
        read(LINE.replace(old, new, 1))
    assert "test.csv:4" in str(caught.value)


def test_a_second_row_for_the_same_thing_is_refused() -> None:
    with pytest.raises(CatalogError, match=r"test\.csv:3: a second row"):
        parse([HEADER, LINE, LINE], "test.csv")


def test_other_columns_are_refused() -> None:
    with pytest.raises(CatalogError, match="columns"):
        parse(["a,b", "1,2"], "test.csv")
