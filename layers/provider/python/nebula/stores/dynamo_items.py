"""Models as DynamoDB items and back, the same way in every table.

Attributes are native and at the top level, so that an operator can read a row and an index can use it:
Decimal and int as Number, times as ISO-8601 in UTC with six decimals and ``Z`` (fixed width, so they
sort as text), durations as ISO-8601, enums as their text, collections as List or Map. A field that is
None is left out when None is its default. Floats are refused (they do not round-trip) and so are
secrets (they do not belong in a row).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, TypeVar

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from pydantic import BaseModel, TypeAdapter

Item = dict[str, Any]
"""Attributes in the wire form, ``{"phase": {"S": "Placed"}}``."""

ModelT = TypeVar("ModelT", bound=BaseModel)

_serializer = TypeSerializer()
_deserializer = TypeDeserializer()
_durations: TypeAdapter[timedelta] = TypeAdapter(timedelta)


def time_text(moment: datetime) -> str:
    """A time as rows hold it: ``2026-11-01T12:00:00.000000Z``. ValueError for a naive one."""
    if moment.tzinfo is None:
        raise ValueError("time must be aware")
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def to_attributes(values: Mapping[str, Any]) -> Item:
    """Plain values (text, numbers, times, models, collections of these) in the wire form."""
    return {name: _serializer.serialize(_native(value)) for name, value in values.items()}


def to_item(model: BaseModel) -> Item:
    """A model in the wire form."""
    return to_attributes(_fields(model))


def to_values(item: Mapping[str, Any]) -> dict[str, Any]:
    """The wire form as plain values; numbers become Decimal."""
    return {name: _deserializer.deserialize(value) for name, value in item.items()}


def from_item(model: type[ModelT], item: Mapping[str, Any]) -> ModelT:
    """The wire form as a model; attributes that it does not know are ignored."""
    return model.model_validate(to_values(item))


def _fields(model: BaseModel) -> dict[str, Any]:
    values = {}
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        if value is not None or field.is_required() or field.default is not None:
            values[name] = value
    return values


def _native(value: Any) -> Any:
    """The value in the types that the serializer knows."""
    if value is None or isinstance(value, bool | int | Decimal):
        return value
    if isinstance(value, str):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, datetime):
        return time_text(value)
    if isinstance(value, timedelta):
        return _durations.dump_python(value, mode="json")
    if isinstance(value, BaseModel):
        return {name: _native(part) for name, part in _fields(value).items()}
    if isinstance(value, Mapping):
        return {str(name): _native(part) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return [_native(part) for part in value]
    raise TypeError(f"{type(value).__name__} has no place in a ledger row")
