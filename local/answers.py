"""moto's DynamoDB, with answers that are not searched for and rows that are measured once.

moto writes every answer by its service's model: for each value of a row it asks for each of the ten types that a value
can have, under each of the names that some backend may have given it. One claim of a ledger takes it twenty
milliseconds; a look at some hundred takes longer than a client waits, and nobody else gets an answer meanwhile. But a
row's values already have the form in which they are sent, binary ones excepted; those still go moto's way.

And moto takes a row's projection into an index attribute by attribute, each time from the whole row, translated anew;
it copies a map to measure it, with all that is in it, at each level and twice for each row that it reads; and it
measures all that a new row holds already with each attribute that it adds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.core.serialize import SERVICE_SPECIFIC_SERIALIZERS, JSONSerializer
from moto.dynamodb.models.dynamo_type import DynamoType, Item, LimitedSizeDict
from moto.dynamodb.models.table import SecondaryIndex
from moto.dynamodb.models.utilities import bytesize

_AS_THEY_ARE = frozenset({"S", "N", "SS", "NS", "BOOL", "NULL"})


class PlainValues(JSONSerializer):
    """Writes an ``AttributeValue`` without a search, where it is sent as it is kept."""

    def _serialize_type_structure(self, serialized: Any, value: Any, shape: Any, key: str) -> None:
        if shape.name == "AttributeValue" and _is_plain(value):
            serialized[key] = value
        else:
            super()._serialize_type_structure(serialized, value, shape, key)


def install() -> None:
    """Answer so from now on in this process."""
    SERVICE_SPECIFIC_SERIALIZERS["dynamodb"] = {"json": PlainValues}
    index: Any = SecondaryIndex
    index.project = project
    value: Any = DynamoType
    value.size = by_parts(value.size)
    value.__deepcopy__ = twin
    row: Any = Item
    row.__init__ = fill


def project(index: SecondaryIndex, item: Item) -> Item:
    """What an index holds of a row. The values are the row's own: moto projects copies only."""
    kind = index.projection.get("ProjectionType")
    if kind not in ("KEYS_ONLY", "INCLUDE"):
        return item
    names = {*index.table_key_attrs, *index.schema_key_attrs}
    if kind == "INCLUDE":
        names.update(index.projection.get("NonKeyAttributes", ()))
    part = Item(item.hash_key, item.range_key, {})
    part.attrs.update({name: value for name, value in item.attrs.items() if name in names})
    return part


def by_parts(original: Callable[[DynamoType], int]) -> Callable[[DynamoType], int]:
    """The method ``size`` (bytes) that measures the parts of maps and lists where they are; ``original`` is moto's."""

    def size(value: DynamoType) -> int:
        kind, content = value.type, value.value
        if kind == "S":
            return bytesize(content)
        if kind == "L":
            return sum(size(part) for part in content)
        if kind == "M":
            return sum(bytesize(name) + size(part) for name, part in content.items())
        return original(value)

    return size


def twin(value: DynamoType, memo: dict[int, Any]) -> DynamoType:
    """The method ``__deepcopy__``: a value holds no other twice, so nothing is looked up in ``memo``."""
    made, content = object.__new__(DynamoType), value.value
    made.type = value.type
    if value.type == "M":
        made.value = {name: twin(part, memo) for name, part in content.items()}
    elif value.type == "L":
        made.value = [twin(part, memo) for part in content]
    else:
        made.value = list(content) if isinstance(content, list) else content
    return made


def fill(item: Item, hash_key: DynamoType, range_key: DynamoType | None, attrs: dict[str, Any]) -> None:
    """The method ``__init__`` of a row: moto measures as the last attribute is added, which is when all are there."""
    item.hash_key, item.range_key, item.attrs = hash_key, range_key, LimitedSizeDict()
    parts = [(name, DynamoType(value)) for name, value in attrs.items()]
    item.attrs.update(parts[:-1])
    for name, value in parts[-1:]:
        item.attrs[name] = value


def _is_plain(value: Any) -> bool:
    """Whether JSON says this value as DynamoDB does."""
    if not isinstance(value, dict) or len(value) != 1:
        return False
    ((kind, content),) = value.items()
    if kind == "M":
        return all(_is_plain(part) for part in content.values())
    if kind == "L":
        return all(_is_plain(part) for part in content)
    return kind in _AS_THEY_ARE
