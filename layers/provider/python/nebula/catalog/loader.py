"""Rows of a shipped CSV to offerings.

One file per provider, ``data/<name>.csv``. Lines that begin with ``#`` are comments. Every row names
its unit, its source and its date; money is USD.

Columns: ``instance_type`` (the provider's id), ``accelerator`` (canonical type, empty for CPU-only),
``accelerator_count``, ``unit`` (see ``Unit``), ``max_count``, ``vcpu``, ``memory_gib``,
``memory_gib_per_vcpu``, ``capacity_type``, ``price_usd_per_hour``, ``regions`` (``|`` between them),
``parameters`` (``cloud=SECURE``: pool parameters the row is for, ``;`` between them), ``by_default``
(whether it also holds where a pool leaves them out), ``sold``, ``source``, ``as_of``.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from functools import cache
from importlib.resources import files

from nebula.domain.candidate import CapacityType
from nebula.domain.offering import Offering

COLUMNS = (
    "instance_type",
    "accelerator",
    "accelerator_count",
    "unit",
    "max_count",
    "vcpu",
    "memory_gib",
    "memory_gib_per_vcpu",
    "capacity_type",
    "price_usd_per_hour",
    "regions",
    "parameters",
    "by_default",
    "sold",
    "source",
    "as_of",
)


class CatalogError(Exception):
    """A shipped row cannot be read; the message names file, line and column."""


class Unit(StrEnum):
    """What one price buys."""

    ACCELERATOR_HOUR = "accelerator-hour"
    VCPU_HOUR = "vcpu-hour"
    INSTANCE_HOUR = "instance-hour"


@dataclass(frozen=True)
class Row:
    """One row as written. ``price`` is None where the source gives none: then ``sold`` is False.

    A row that is not sold still tells which canonical type an id is.
    """

    instance_type: str
    accelerator: str | None
    accelerator_count: int
    unit: Unit
    max_count: int | None
    vcpu: Decimal | None
    memory_gib: Decimal | None
    memory_gib_per_vcpu: Decimal | None
    capacity_type: CapacityType
    price: Decimal | None
    regions: tuple[str, ...]
    parameters: dict[str, str]
    by_default: bool
    sold: bool
    source: str
    as_of: datetime

    def offering(
        self, provider: str, *, disk_price_per_gb_hour: Decimal = Decimal(0), default_disk_gb: int = 0
    ) -> Offering | None:
        """The row as an offering with ``source`` ``catalog``; None when it is not sold."""
        if not self.sold or self.price is None:
            return None
        return Offering(
            provider=provider,
            instance_type=self.instance_type,
            accelerator=self.accelerator,
            accelerator_count=self.accelerator_count,
            per_accelerator=self.unit is not Unit.INSTANCE_HOUR,
            max_count=self.max_count,
            memory_gib_per_vcpu=self.memory_gib_per_vcpu,
            vcpu=self.vcpu,
            memory_gib=self.memory_gib,
            capacity_type=self.capacity_type,
            price_per_hour=self.price,
            disk_price_per_gb_hour=disk_price_per_gb_hour,
            default_disk_gb=default_disk_gb,
            regions=self.regions,
            parameters=self.parameters,
            by_default=self.by_default,
            source="catalog",
            as_of=self.as_of,
        )


@cache
def load(name: str) -> tuple[Row, ...]:
    """The rows of ``data/<name>.csv``, read once per process. Raises ``CatalogError``."""
    text = files("nebula.catalog").joinpath("data", f"{name}.csv").read_text(encoding="utf-8")
    return parse(text.splitlines(), f"{name}.csv")


def parse(lines: Iterable[str], name: str) -> tuple[Row, ...]:
    """Read the lines of one file. Raises ``CatalogError``, for two rows that say the same thing too."""
    kept = [(number, line) for number, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")]
    reader = csv.DictReader([line for _, line in kept])
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise CatalogError(f"{name}: the columns must be {', '.join(COLUMNS)}")
    rows: list[Row] = []
    seen: set[tuple[object, ...]] = set()
    for (number, _), cells in zip(kept[1:], reader, strict=True):
        place = f"{name}:{number}"
        row = _row(cells, place)
        identity = (row.instance_type, row.capacity_type, row.regions, tuple(sorted(row.parameters.items())))
        if identity in seen:
            raise CatalogError(f"{place}: a second row for {row.instance_type}")
        seen.add(identity)
        rows.append(row)
    return tuple(rows)


def _row(cells: dict[str, str], place: str) -> Row:
    try:
        return _checked(
            Row(
                instance_type=_needed(cells, "instance_type"),
                accelerator=cells["accelerator"] or None,
                accelerator_count=int(_needed(cells, "accelerator_count")),
                unit=Unit(cells["unit"]),
                max_count=int(cells["max_count"]) if cells["max_count"] else None,
                vcpu=_decimal(cells["vcpu"]),
                memory_gib=_decimal(cells["memory_gib"]),
                memory_gib_per_vcpu=_decimal(cells["memory_gib_per_vcpu"]),
                capacity_type=CapacityType(cells["capacity_type"]),
                price=_decimal(cells["price_usd_per_hour"]),
                regions=tuple(filter(None, cells["regions"].split("|"))),
                parameters=dict(_pair(one) for one in cells["parameters"].split(";") if one),
                by_default=_flag(cells["by_default"]),
                sold=_flag(cells["sold"]),
                source=_needed(cells, "source"),
                as_of=datetime.combine(date.fromisoformat(cells["as_of"]), datetime.min.time(), UTC),
            )
        )
    except (ValueError, KeyError, TypeError, AttributeError, InvalidOperation) as error:
        raise CatalogError(f"{place}: {error}") from None


def _checked(row: Row) -> Row:
    if row.sold and (row.price is None or row.price <= 0):
        raise ValueError("sold without a price")
    if row.accelerator != (row.accelerator.upper() if row.accelerator else None):
        raise ValueError("the canonical type must be in upper case")
    if (row.accelerator is None) != (row.accelerator_count == 0):
        raise ValueError("accelerator and accelerator_count disagree")
    if row.unit is Unit.VCPU_HOUR and (row.accelerator is not None or row.memory_gib_per_vcpu is None):
        raise ValueError("a vCPU price needs memory_gib_per_vcpu and no accelerator")
    if row.unit is Unit.ACCELERATOR_HOUR and row.accelerator_count != 1:
        raise ValueError("an accelerator price is for one accelerator")
    return row


def _needed(cells: dict[str, str], column: str) -> str:
    if not cells[column]:
        raise ValueError(f"{column} is empty")
    return cells[column]


def _decimal(text: str) -> Decimal | None:
    return Decimal(text) if text else None


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(f"{text!r} is not true or false")
    return text == "true"


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise ValueError(f"{text!r} is not name=value")
    return name, value
