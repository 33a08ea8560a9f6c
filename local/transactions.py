"""moto's DynamoDB, with a transaction that costs as much as the rows it names and not as much as the table.

moto's ``TransactWriteItems`` copies every table that it writes to, whole, once for each write in it, to have something
to go back to when a condition does not hold; and it keeps every row and table that was ever made or copied in a list
that only its dashboard reads. A transaction then takes longer the more claims there are, a run as long as the square of
them, and the memory goes the same way.

Here moto's own code runs, unchanged, on tables that hold copies of the named rows and nothing else. What it leaves
there goes to the real tables when it came to its end. When it refused, the real tables were never touched. Conditions,
expressions, answers, cancellation reasons and stream records are therefore moto's own.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.dynamo_type import Item
from moto.dynamodb.models.table import Table

Transact = Callable[[Any, list[dict[str, Any]]], None]


class Unkept(list[Any]):
    """Takes what moto's dashboard would show, and keeps none of it."""

    def append(self, _instance: Any, /) -> None:
        """Nothing."""


def install() -> None:
    """Make every DynamoDB of this process one of these. Calls must come one at a time, as with moto's own."""
    models: tuple[Any, ...] = (Table, Item)
    for model in models:
        model.instances_tracked = Unkept()
    backend: Any = DynamoDBBackend
    backend.transact_write_items = by_rows(backend.transact_write_items)


def by_rows(original: Transact) -> Transact:
    """The method ``transact_write_items`` over copies of the named rows; ``original`` is moto's."""

    def transact_write_items(backend: Any, transact_items: list[dict[str, Any]]) -> None:
        cuts = {name: Cut.of(table) for name, table in dict(backend.tables).items()}
        for table, key in _named(backend, transact_items):
            cuts[table.name].add(*key)
        stage = copy.copy(backend)
        stage.tables = {name: cut.part for name, cut in cuts.items()}
        original(stage, transact_items)
        for cut in cuts.values():
            cut.merge()

    return transact_write_items


@dataclass(frozen=True)
class Cut:
    """A table, and a part of it: everything about it, but of its rows only copies of those that were added."""

    table: Any
    part: Any
    keys: list[tuple[Any, Any]]

    @classmethod
    def of(cls, table: Any) -> Cut:
        """A part without rows, with a stream that goes on where the table's ends."""
        part = copy.copy(table)
        part.items = defaultdict(dict)
        if table.stream_shard is not None:
            shard = part.stream_shard = copy.copy(table.stream_shard)
            shard.table, shard.items = part, []
            shard.starting_sequence_number += len(table.stream_shard.items)
        return cls(table, part, [])

    def add(self, hash_key: Any, range_key: Any) -> None:
        """Copy a row, if there is one, into the part."""
        self.keys.append((hash_key, range_key))
        row = self.table.get_item(hash_key, range_key)
        if row is not None:
            _place(self.part, hash_key, range_key, copy.deepcopy(row))

    def merge(self) -> None:
        """Make the table's rows what they are in the part."""
        for hash_key, range_key in self.keys:
            row = self.part.get_item(hash_key, range_key)
            if row is None:
                _displace(self.table, hash_key, range_key)
            else:
                _place(self.table, hash_key, range_key, row)
        if self.keys and self.table.stream_shard is not None:
            self.table.stream_shard.items.extend(self.part.stream_shard.items)


def _named(backend: Any, transact_items: Iterable[dict[str, Any]]) -> Iterator[tuple[Any, tuple[Any, Any]]]:
    """Table and key of each row that a well-formed operation names."""
    for operation in (each for item in transact_items for each in item.values()):
        try:
            table = backend.get_table(operation["TableName"])
            key = backend.get_keys_value(table, operation["Key"] if "Key" in operation else operation["Item"])
            hash(key)
        except Exception:  # noqa: BLE001, S112 - moto refuses it in its own words, whatever the table holds
            continue
        yield table, key


def _place(table: Any, hash_key: Any, range_key: Any, row: Item) -> None:
    if range_key is None:
        table.items[hash_key] = row
    else:
        table.items[hash_key][range_key] = row


def _displace(table: Any, hash_key: Any, range_key: Any) -> None:
    if range_key is None:
        table.items.pop(hash_key, None)
    else:
        table.items[hash_key].pop(range_key, None)
