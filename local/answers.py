"""moto's DynamoDB, with answers that are not searched for.

moto writes every answer by its service's model: for each value of a row it asks for each of the ten types that a value
can have, under each of the names that some backend may have given it. One claim of a ledger takes it twenty
milliseconds; a look at some hundred takes longer than a client waits, and nobody else gets an answer meanwhile. But a
row's values already have the form in which they are sent, binary ones excepted; those still go moto's way.

And moto takes a row's projection into an index attribute by attribute, each time from the whole row, translated anew.
"""

from __future__ import annotations

from typing import Any

from moto.core.serialize import SERVICE_SPECIFIC_SERIALIZERS, JSONSerializer
from moto.dynamodb.models.dynamo_type import Item
from moto.dynamodb.models.table import SecondaryIndex

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
