"""Kubernetes quantities, exactly: one parser, Decimal throughout.

Grammar: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/ . Sign,
digits with an optional point, then no suffix, one of ``n u m k M G T P E`` or ``Ki Mi Gi Ti Pi Ei``,
or ``e``/``E`` with a signed integer. ``1E`` is exa, ``1E3`` a thousand; ``K`` and ``MB`` are invalid.
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from typing import Final

MAX: Final = Decimal(2**63 - 1)
_FINEST: Final = Decimal("1e-9")
_MAX_LENGTH: Final = 128
_MAX_EXPONENT: Final = 1000
_PATTERN: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]{1,6}))?",
    re.ASCII,
)
_DECIMAL_SUFFIXES: Final = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIXES: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
#: Wide enough for every text within the limits above, so that no operation rounds by itself.
_EXACT: Final = Context(prec=2 * _MAX_EXPONENT + _MAX_LENGTH + 64)


class InvalidQuantityError(ValueError):
    """The text is not a quantity. The message shows it: a quantity is never a secret."""


def parse_quantity(value: object) -> Decimal:
    """The value in base units (cores, bytes, pieces).

    A plain integer or float of a hand-written manifest is read as its text. What is finer than
    ``n`` is rounded away from zero; what is larger than 2^63-1 is capped, as the API server does.
    Raises InvalidQuantityError.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidQuantityError(f"a quantity is text or a number, not {type(value).__name__}")
    text = value if isinstance(value, str) else repr(value)
    match = _PATTERN.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None:
        raise InvalidQuantityError(f"{text[:_MAX_LENGTH]!r} is not a quantity")
    with localcontext(_EXACT):
        return _canonical(Decimal(match["number"]) * _multiplier(match["suffix"], match["exponent"]))


def ceil_to(value: Decimal, unit: Decimal) -> Decimal:
    """``value`` rounded up to a multiple of ``unit``; both in the same base unit."""
    with localcontext(_EXACT):
        return (value / unit).to_integral_value(ROUND_CEILING) * unit if value % unit else value


def _multiplier(suffix: str | None, exponent: str | None) -> Decimal:
    if suffix in _BINARY_SUFFIXES:
        return Decimal(2 ** _BINARY_SUFFIXES[suffix])
    power = _DECIMAL_SUFFIXES[suffix] if suffix else int(exponent or 0)
    if abs(power) > _MAX_EXPONENT:
        raise InvalidQuantityError(f"exponent {power} is out of range")
    return Decimal(1).scaleb(power)


def _canonical(value: Decimal) -> Decimal:
    if abs(value) > MAX:
        return MAX.copy_sign(value)
    rounding = ROUND_FLOOR if value < 0 else ROUND_CEILING
    rounded = value.quantize(_FINEST, rounding) if value % _FINEST else value
    return Decimal(f"{rounded:f}") if rounded else Decimal(0)
