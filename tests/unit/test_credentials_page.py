"""docs/credentials.md says what the code does: rules, defaults, reasons, and the places that commands point to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from nebula.credentials.matching import matching_keys, normalise_key
from nebula.providers import errors
from nebula.workflows.pull_choice import MAX_TRIED
from nebula.workflows.retire_provider import UNPROVED

from cli.credentials_table import RUNBOOK
from local.template import load

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / RUNBOOK).read_text(encoding="utf-8")
WORKFLOW = (ROOT / "layers/provider/python/nebula/workflows/retire_provider.py").read_text(encoding="utf-8")


def _section(heading: str) -> str:
    return PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]


def _rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("| ") and "---" not in line]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_the_examples_of_matching_match_as_they_say() -> None:
    examples = [row for row in _rows(_section("Which credential an image gets")) if row[-1].startswith(("yes", "no"))]
    assert len(examples) >= 6
    for image, keys, said in examples:
        for key in re.findall(r"`([^`]+)`", keys):
            found = matching_keys([normalise_key(key)], image.strip("`"))
            assert bool(found) == said.startswith("yes"), (image, key)


def test_the_policy_s_defaults_are_the_template_s() -> None:
    declared = load()["Parameters"]
    rows = {row[0].strip("`"): row[1] for row in _rows(_section("Policy"))[1:]}
    assert set(rows) == {
        "UnusedAfter", "SupersededAfter", "RetirementGrace", "MaxAge", "RetirementDryRun", "RetirementOverrides",
    }  # fmt: skip
    for name, shown in rows.items():
        default = str(declared[name]["Default"])
        assert shown == (f"`{default}`" if default else "empty: none"), name


def test_every_reason_of_a_failed_retirement_is_in_the_runbook_and_is_one() -> None:
    overdue = _section("Runbook").split("### Retirement overdue\n", 1)[1].split("\n### ", 1)[0]
    reasons = [reason for row in _rows(overdue)[1:] for reason in re.findall(r"`([^`]+)`", row[0])]
    assert len(reasons) >= 8
    for reason in reasons:
        known = reason in WORKFLOW or reason in UNPROVED or hasattr(errors, f"{reason}Error")
        assert known, reason
    written = re.findall(r'"(?:\{self\.name\} )?([a-z][^"{}]+)", kind=Kind\.FAILED', WORKFLOW)
    assert written
    assert all(reason in reasons for reason in written)


def test_how_many_credentials_are_tried_is_said() -> None:
    assert MAX_TRIED == 5
    assert "up to five different passwords" in PAGE


@pytest.mark.parametrize(
    ("source", "pointer"),
    [
        ("cli/credentials_table.py", r"RUNBOOK\}#([a-z-]+)"),
        ("docs/operations.md", r"\(credentials\.md#([a-z-]+)\)"),
        ("docs/credentials.md", r"\(#([a-z-]+)\)"),
    ],
)
def test_what_points_into_the_page_finds_its_heading(source: str, pointer: str) -> None:
    titles = [line.lstrip("# ").lower() for line in PAGE.splitlines() if line.startswith("#")]
    headings = {re.sub(r"[^a-z0-9 -]", "", title).replace(" ", "-") for title in titles}
    wanted = set(re.findall(pointer, (ROOT / source).read_text(encoding="utf-8")))
    assert wanted
    assert wanted <= headings, wanted - headings
