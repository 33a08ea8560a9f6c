"""The rows of the report: one per budget, with its figure, its limit and a verdict. Pure.

A row is made from what a section measured; a section that was not asked for has no rows, one that failed has rows
without a figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

Section = Mapping[str, Any]


class Verdict(StrEnum):
    """What a figure is against its limit."""

    OK = "ok"
    OVER = "over"
    REPORTED = "reported"
    UNMEASURED = "NOT MEASURED"


@dataclass(frozen=True)
class Budget:
    """One row before it is measured: where the figure is found, and what it may be at most (None: reported).

    ``applies`` says whether the limit holds for what was measured: a run of another size is only reported.
    """

    id: str
    what: str
    section: str
    unit: str
    limit: float | None
    how: str
    figure: Callable[[Section], float]
    detail: Callable[[Section], str] = lambda _: ""
    applies: Callable[[Section], bool] = lambda _: True


@dataclass(frozen=True)
class Row:
    """One row as measured."""

    id: str
    what: str
    figure: float | None
    unit: str
    limit: float | None
    verdict: Verdict
    detail: str
    how: str

    def plain(self) -> dict[str, Any]:
        """For the JSON file."""
        return {**asdict(self), "verdict": str(self.verdict)}


def verdict(figure: float | None, limit: float | None) -> Verdict:
    """At most the limit is ok."""
    if figure is None:
        return Verdict.UNMEASURED
    if limit is None:
        return Verdict.REPORTED
    return Verdict.OK if figure <= limit else Verdict.OVER


def rows(budgets: Iterable[Budget], sections: Mapping[str, Section | None]) -> list[Row]:
    """A row for each budget whose section was asked for; None stands for a section that failed."""
    found = []
    for budget in budgets:
        if budget.section not in sections:
            continue
        section = sections[budget.section]
        figure = None if section is None else round(budget.figure(section), 4)
        limit = budget.limit if section is None or budget.applies(section) else None
        found.append(
            Row(
                id=budget.id,
                what=budget.what,
                figure=figure,
                unit=budget.unit,
                limit=limit,
                verdict=verdict(figure, limit),
                detail="" if section is None else budget.detail(section),
                how=budget.how,
            )
        )
    return found
