"""The benchmark's report: verdicts, table, JSON, page. Nothing is measured here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.benchmark import __main__ as command
from tests.benchmark import idle, layer, prices, report, stages
from tests.benchmark.budgets import BUDGETS
from tests.benchmark.rows import Verdict, rows, verdict

PHASE: dict[str, Any] = {
    "seconds": 9.5,
    "pods_per_second": 52.6,
    "stages": [
        {"stage": "created", "pods": 500, "p50_s": 0.0, "p95_s": 0.0, "max_s": 0.0, "last_s": 1.5},
        {"stage": "gated seen", "pods": 0},
        {"stage": "Ready", "pods": 500, "p50_s": 5.0, "p95_s": 8.0, "max_s": 9.0, "last_s": 9.5},
    ],
    "cpu_ms_per_pod": {"functions": 14.0, "kubernetes emulator": 6.0, "observer": 1.0},
    "emulator_share": 0.28,
}
ENGINE: dict[str, Any] = {"pods": 500, "tick_seconds": 1.5, "up": PHASE, "down": {**PHASE, "seconds": 10.5}}
SURROUNDINGS: dict[str, Any] = {
    "date": "2026-11-30T09:00:00Z",
    "machine": {"cpu": "Some CPU", "architecture": "x86_64", "usable_cores": 2, "memory_gib": 8.0, "system": "Linux 6"},
    "versions": {"python": "3.13.0", "pydantic": "2.13.5"},
    "load_average": [0.1, 0.2, 0.3],
    "yardstick_ms": {"engine": 91.5, "stack": 80.0},
}


def of(sections: dict[str, Any]) -> dict[str, Any]:
    return {row.id: row for row in rows(BUDGETS, sections)}


@pytest.mark.parametrize(
    ("figure", "limit", "expected"),
    [
        (9.9, 10.0, Verdict.OK),
        (10.0, 10.0, Verdict.OK),
        (10.1, 10.0, Verdict.OVER),
        (0.0, 0.0, Verdict.OK),
        (0.1, 0.0, Verdict.OVER),
        (7.0, None, Verdict.REPORTED),
        (None, 10.0, Verdict.UNMEASURED),
        (None, None, Verdict.UNMEASURED),
    ],
)
def test_a_verdict(figure: float | None, limit: float | None, expected: Verdict) -> None:
    assert verdict(figure, limit) is expected


def test_every_section_has_a_row_and_every_row_a_section() -> None:
    assert {budget.section for budget in BUDGETS} == set(command.measures(command.parse([])))
    assert len({budget.id for budget in BUDGETS}) == len(BUDGETS)


def test_rows_come_only_from_what_was_asked_for() -> None:
    found = of({"engine": ENGINE})
    assert set(found) == {"engine-up", "engine-down"}
    assert (found["engine-up"].verdict, found["engine-down"].verdict) == (Verdict.OK, Verdict.OVER)
    assert "created 0/0/0, Ready 5/8/9" in found["engine-up"].detail
    assert "CPU 20.0 ms a Pod without the observer" in found["engine-up"].detail


def test_both_directions_of_the_local_stack_say_their_stages_and_the_share_of_the_emulators() -> None:
    found = of({"stack": {**ENGINE, "tick_seconds": 15.0, "emulator_share": 0.58, "cpu_summary": "aws 77 s"}})
    assert [(row.figure, row.verdict) for row in found.values()] == [(9.5, Verdict.REPORTED), (10.5, Verdict.REPORTED)]
    for row in found.values():
        assert "created 0/0/0, Ready 5/8/9" in row.detail
        assert "58% (aws 77 s)" in row.detail


def test_a_run_of_another_size_is_held_against_no_limit() -> None:
    assert of({"engine": {**ENGINE, "pods": 20}})["engine-down"].verdict is Verdict.REPORTED


def test_growth_is_the_worse_of_both_directions() -> None:
    slower = {**PHASE, "cpu_ms_per_pod": {"functions": 30.0, "observer": 99.0}}
    row = of({"linearity": {"small": ENGINE, "large": {**ENGINE, "pods": 5000, "down": slower}}})["engine-linear"]
    assert (row.figure, row.verdict) == (1.5, Verdict.OVER)


def test_a_section_that_failed_is_loud() -> None:
    made = report.assemble({"engine": None, "layer": None}, {"engine": "no room", "layer": "no net"}, SURROUNDINGS)
    assert report.exit_status(made) == 1
    text = report.table(made)
    assert text.count("NOT MEASURED") == 5
    assert "NOT MEASURED: engine: no room" in text
    assert "**Not measured**: layer: no net" in report.markdown(made)


def test_a_row_that_misses_is_said_and_is_no_failure() -> None:
    made = report.assemble({"engine": ENGINE}, {}, SURROUNDINGS)
    assert report.exit_status(made) == 0
    (line,) = (line for line in report.table(made).splitlines() if "deleted to gone" in line)
    assert line.split()[-6:] == ["10.5", "s", "limit", "10", "s", "over"]


def test_the_file_holds_conditions_rows_and_all_that_was_measured(tmp_path: Path) -> None:
    made = report.assemble({"engine": ENGINE}, {}, SURROUNDINGS)
    report.write_json(made, tmp_path / "deep" / "bench.json")
    read = json.loads((tmp_path / "deep" / "bench.json").read_text())
    assert read == json.loads(json.dumps(made))
    assert {"schema", *SURROUNDINGS, "rows", "failures", "sections"} == set(read)
    assert "yardstick 80 to 91.5 ms" in report.surroundings(read)
    assert {"id", "what", "figure", "unit", "limit", "verdict", "detail", "how"} == set(read["rows"][0])


def test_the_page_is_written_between_its_marks_and_again(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text(f"# Before\n\n{report.BEGIN}\nold\n{report.END}\n\nafter\n")
    made = report.assemble({"engine": ENGINE}, {}, SURROUNDINGS)
    report.write_page(made, page)
    once = page.read_text()
    report.write_page(made, page)
    assert page.read_text() == once
    assert once.startswith("# Before\n")
    assert once.endswith("\n\nafter\n")
    assert "old" not in once
    assert "| engine only: Pods deleted to gone | 10.5 s | 10 s | over |" in once
    assert "| Ready | 5 | 8 | 9 | 9.5 |" in once
    page.write_text("no marks")
    with pytest.raises(ValueError, match="figures: begin"):
        report.write_page(made, page)


def test_the_page_in_docs_has_the_marks() -> None:
    text = command.PAGE.read_text(encoding="utf-8")
    assert (text.count(report.BEGIN), text.count(report.END)) == (1, 1)


def test_sections_that_fail_do_not_stop_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> dict[str, Any]:
        raise OSError("no route")

    sections, failures = command.measure({"layer": fails, "engine": lambda: ENGINE}, {})
    assert sections == {"layer": None, "engine": ENGINE}
    assert failures == {"layer": "OSError: no route"}
    assert "no route" in capsys.readouterr().err


@pytest.mark.parametrize(("percent", "expected"), [(50, 2), (95, 4), (100, 4), (1, 1), (25, 1), (26, 2)])
def test_percentiles_are_nearest_rank(percent: float, expected: float) -> None:
    assert stages.nearest_rank([4, 1, 3, 2], percent) == expected


def test_stages_count_from_the_pod_and_from_the_run() -> None:
    seen = stages.merge({"a": {"created": 1.0, "Ready": 4.0}, "b": {"created": 2.0}}, {"a": {"Ready": 3.0}})
    created, ready = stages.summary(seen, ("created", "Ready"), 0.5, "created")
    assert (created["pods"], created["max_s"], created["last_s"]) == (2, 0, 1.5)
    assert (ready["pods"], ready["p50_s"], ready["last_s"]) == (1, 2.0, 2.5)


def test_a_free_quantity_counts_once_and_never_below_nothing() -> None:
    made = idle.priced({"Scheduler": (prices.SCHEDULER, 15_000_000), "KMS": (prices.KMS_REQUESTS, 100)})
    assert (made["total"], made["total_with_free_tier"]) == (15.0, 1.0)
    assert made["arithmetic"] == {"full": "Scheduler 15.00", "free": "Scheduler 1.00"}
    assert all(line["source"].startswith("https://aws.amazon.com/") for line in made["lines"].values())


def test_a_layer_is_as_large_as_its_files(tmp_path: Path) -> None:
    (tmp_path / "python" / "botocore").mkdir(parents=True)
    (tmp_path / "python" / "botocore" / "data.json").write_bytes(b"x" * 1_500_000)
    (tmp_path / "python" / "link").symlink_to(tmp_path / "python" / "botocore" / "data.json")
    assert layer.measure(tmp_path) == {"megabytes": 1.5, "files": 1, "largest": {"botocore": 1.5}}
