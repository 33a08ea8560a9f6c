"""An explanation as text: the candidate table, then the decision in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

HEADERS = ("rank", "provider", "instance type", "region", "tier", "$/h", "parts", "price from", "frees", "verdict")
_MAX_ID = 42


def render(answer: Mapping[str, Any]) -> str:
    """The whole answer; a refused Pod has no table."""
    if answer["refused"] is not None:
        return f"refused: {answer['refused']['reason']}: {answer['refused']['message']}"
    rows = [_row(candidate) for candidate in answer["candidates"]]
    lines = [
        f"{answer['pod']} asks for {answer['asks_for']}; NodePool {answer['node_pool']}, strategy {answer['strategy']}",
        "",
        *columns([HEADERS, *rows]),
        "",
        f"{'placed' if answer['placed'] else 'deferred'}: {answer['message']}",
    ]
    if answer["retry_at"] is not None:
        lines.append(f"looked at again at {answer['retry_at']}")
    return "\n".join([*lines, *(f"note: {note}" for note in answer["notes"])])


def _row(candidate: Mapping[str, Any]) -> tuple[str, ...]:
    price = candidate["price_per_hour"]
    return (
        str(candidate["rank"] or "-"),
        candidate["provider"] + _braced(candidate["parameters"]),
        _ids(candidate["instance_types"]),
        candidate["region"],
        candidate["capacity_type"],
        "-" if price is None else price["total"],
        "-" if price is None else _parts(price),
        "-" if price is None else _origin(price),
        candidate["frees_at"] or "-",
        candidate["verdict"] if candidate["reason"] is None else f"{candidate['reason']}: {candidate['detail']}",
    )


def _ids(instance_types: Sequence[str]) -> str:
    if not instance_types:
        return "-"
    more = f" +{len(instance_types) - 1}" if len(instance_types) > 1 else ""
    return instance_types[0][:_MAX_ID] + more


def _braced(parameters: Mapping[str, str]) -> str:
    return f" ({', '.join(f'{name}={value}' for name, value in sorted(parameters.items()))})" if parameters else ""


def _parts(price: Mapping[str, Any]) -> str:
    named = (("gpu", price["gpus"]), ("cpu", price["cpu"]), ("disk", price["disk"]))
    return " + ".join(f"{name} {amount}" for name, amount in named if float(amount)) or "-"


def _origin(price: Mapping[str, Any]) -> str:
    age = f"{price['age_days']} d old" + (" (!)" if price["old"] else "")
    return f"{price['source']}, {age}"


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of equal length as lines with aligned columns."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
