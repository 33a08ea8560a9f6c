"""The report as JSON, as a table for a terminal, and as one for ``docs/performance.md``. Pure, but for two writes."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmark.budgets import BUDGETS
from tests.benchmark.rows import Section, Verdict, rows

SCHEMA = 1
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
_WIDTH = 118


def assemble(
    sections: Mapping[str, Section | None], failures: Mapping[str, str], surroundings: Mapping[str, Any]
) -> dict[str, Any]:
    """The whole report as plain data. ``failures`` says why a section has no figures."""
    return {
        "schema": SCHEMA,
        **surroundings,
        "rows": [row.plain() for row in rows(BUDGETS, sections)],
        "failures": dict(failures),
        "sections": dict(sections),
    }


def exit_status(report: Mapping[str, Any]) -> int:
    """0 for a complete report, whatever its verdicts; 1 when something could not be measured."""
    return int(bool(report["failures"]) or any(row["verdict"] == Verdict.UNMEASURED for row in report["rows"]))


def table(report: Mapping[str, Any]) -> str:
    """For a terminal: a line per row, its detail below."""
    lines = [surroundings(report), ""]
    for row in report["rows"]:
        lines.append(f"{row['what']:<62}{_figure(row):>16}  limit {_limit(row):<12}{row['verdict']}")
        lines += textwrap.wrap(row["detail"], _WIDTH, initial_indent="    ", subsequent_indent="    ")
    lines += [f"NOT MEASURED: {name}: {why}" for name, why in report["failures"].items()]
    return "\n".join(lines)


def surroundings(report: Mapping[str, Any]) -> str:
    """One line: when, where, with what, under which load."""
    machine, versions = report["machine"], report["versions"]
    loads = "/".join(f"{load:g}" for load in report["load_average"])
    speeds = sorted(report["yardstick_ms"].values()) or [0.0]
    return (
        f"{report['date']}, {machine['cpu']} ({machine['architecture']}), {machine['usable_cores']} cores, "
        f"{machine['memory_gib']:g} GiB, {machine['system']}, Python {versions['python']}, load average {loads}, "
        f"yardstick {speeds[0]:g} to {speeds[-1]:g} ms"
    )


def markdown(report: Mapping[str, Any]) -> str:
    """For the page: conditions, the rows, the stages of the engine's run, and what could not be measured."""
    packages = ", ".join(f"{name} {text}" for name, text in report["versions"].items() if name != "python")
    parts = [f"{surroundings(report)}. {packages}.", "", "| row | figure | limit | verdict |", "|---|---|---|---|"]
    parts += [f"| {row['what']} | {_figure(row)} | {_limit(row)} | {row['verdict']} |" for row in report["rows"]]
    details = [
        f"- *{row['what']}*: {row['detail']}. Measured: {row['how']}." for row in report["rows"] if row["detail"]
    ]
    parts += ["", *details] if details else []
    engine = report["sections"].get("engine")
    if engine:
        parts += ["", *_stages(engine)]
    parts += [f"\n**Not measured**: {name}: {why}" for name, why in report["failures"].items()]
    return "\n".join(parts)


def write_json(report: Mapping[str, Any], path: Path) -> None:
    """The report as a file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".tmp")
    draft.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    draft.replace(path)


def write_page(report: Mapping[str, Any], page: Path) -> None:
    """Put the report's tables between the page's marks. ValueError when the page has none."""
    text = page.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"{page.name} needs one {BEGIN} and one {END}")
    before, rest = text.split(BEGIN)
    page.write_text(f"{before}{BEGIN}\n\n{markdown(report)}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")


def _figure(row: Mapping[str, Any]) -> str:
    return "-" if row["figure"] is None else f"{row['figure']:g} {row['unit']}"


def _limit(row: Mapping[str, Any]) -> str:
    return "none" if row["limit"] is None else f"{row['limit']:g} {row['unit']}"


def _stages(engine: Section) -> Sequence[str]:
    lines = [
        f"Stages of the engine's run with {engine['pods']} Pods, seconds. p50, p95 and max count from the Pod's own "
        "creation (deletion), *last* from the first request of all.",
        "",
        "| stage | p50 | p95 | max | last |",
        "|---|---|---|---|---|",
    ]
    for direction in ("up", "down"):
        lines += [
            f"| {line['stage']} | {line['p50_s']:g} | {line['p95_s']:g} | {line['max_s']:g} | {line['last_s']:g} |"
            for line in engine[direction]["stages"]
            if "p50_s" in line
        ]
    return lines
