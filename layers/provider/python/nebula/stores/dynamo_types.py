"""Plain values in DynamoDB's wire form, ``{"S": "text"}``, and back.

The types: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_AttributeValue.html. Rows here hold text,
numbers, booleans, null, lists and maps; sets and binaries are refused. boto3 does the same with more types, and
its package would be imported for nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Clamped, Context, Decimal, Inexact, Overflow, Rounded, Underflow
from typing import Any

# 38 digits and exponents of -130 to +125; a number that does not fit is refused, never rounded:
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html
_NUMBERS = Context(prec=38, Emin=-128, Emax=126, traps=[Clamped, Overflow, Inexact, Rounded, Underflow])


def encode(value: Any) -> dict[str, Any]:
    """The wire form. TypeError for another type and for what is no finite number; ``decimal`` errors for its size."""
    if value is None:
        return {"NULL": True}
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, str):
        return {"S": value}
    if isinstance(value, int | Decimal):
        return {"N": _number(value)}
    if isinstance(value, Mapping):
        return {"M": {name: encode(part) for name, part in value.items()}}
    if isinstance(value, list | tuple):
        return {"L": [encode(part) for part in value]}
    raise TypeError(f"{type(value).__name__} has no place in a ledger row")


def decode(attribute: Mapping[str, Any]) -> Any:
    """The plain value; numbers become Decimal. TypeError for a type that no row of ours holds."""
    if len(attribute) != 1:
        raise TypeError("an attribute has exactly one type")
    ((kind, value),) = attribute.items()
    decoder = _DECODERS.get(kind)
    if decoder is None:
        raise TypeError(f"no row of ours holds an attribute of type {kind}")
    return decoder(value)


def _number(value: int | Decimal) -> str:
    number = _NUMBERS.create_decimal(value)
    if not number.is_finite():
        raise TypeError("a ledger row holds finite numbers only")
    return str(number)


_DECODERS: Mapping[str, Callable[[Any], Any]] = {
    "S": lambda text: text,
    "N": _NUMBERS.create_decimal,
    "BOOL": lambda flag: flag,
    "NULL": lambda _: None,
    "L": lambda parts: [decode(part) for part in parts],
    "M": lambda parts: {name: decode(part) for name, part in parts.items()},
}
