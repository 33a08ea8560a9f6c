"""``docs/field-reports.md`` names a test, or a reason, for every report that is known."""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/field-reports.md"
NUMBERED = {"A": 11, "B": 16, "C": 18, "D": 12, "E": 13, "F": 9, "G": 13, "I": 4, "X": 15, "Y": 12}
IDS = [f"{letter}{n}" for letter, last in NUMBERED.items() for n in range(1, last + 1)]
IDS += [f"H-{letter}" for letter in "abcdefghijklmnop"]
#: Sections with reports whose test is still being written; the row of such a report says ``open``.
OPEN_SECTIONS: frozenset[str] = frozenset({})
_ROW = re.compile(r"^\| (?P<id>[A-GIXY]\d+|H-[a-p]) \|")
_NAME = re.compile(r"`(test_\w+)`")
_THREAD = re.compile(r"^[\w.-]+/[\w.-]+#\d+$")


@dataclass(frozen=True)
class Row:
    """One line of the page."""

    id: str
    where: str
    happened: str
    done: str
    proof: str

    @property
    def tests(self) -> list[str]:
        return _NAME.findall(self.proof)


def rows() -> list[Row]:
    """Every report's line, in the page's order."""
    lines = [line for line in PAGE.read_text().splitlines() if _ROW.match(line)]
    return [Row(*(cell.strip() for cell in line.strip("|").split(" | "))) for line in lines]


def functions(folder: Path) -> set[str]:
    """The names of the test functions of a folder and all below it."""
    names: set[str] = set()
    for path in folder.rglob("test_*.py"):
        defined = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef))
        names.update(node.name for node in defined if node.name.startswith("test_"))
    return names


@pytest.fixture(scope="module")
def known() -> set[str]:
    return functions(ROOT / "tests")


def test_every_report_has_one_row_and_no_row_is_about_another() -> None:
    assert Counter(row.id for row in rows()) == Counter(IDS)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.id)
def test_a_row_names_a_test_of_its_report_or_says_why_it_cannot_happen(row: Row, known: set[str]) -> None:
    assert len(row.happened) > 10
    assert len(row.done) > 5
    if row.proof == "open":
        assert row.id[0] in OPEN_SECTIONS
        return
    if row.proof.startswith("cannot happen: "):
        assert len(row.proof) > len("cannot happen: ") + 15
        assert row.tests == []
        return
    slug = f"test_{row.id.replace('-', '').lower()}_"
    assert row.tests, row.proof
    assert [name for name in row.tests if name not in known] == []
    assert [name for name in row.tests if not _carries(name, slug)] == []


def _carries(name: str, slug: str) -> bool:
    """``test_a1_…`` carries A1, and so does ``test_x8_a1_…``, which plays two reports at once."""
    return name.startswith(slug) or slug.removeprefix("test") in name


def test_no_section_is_called_open_that_is_done() -> None:
    assert {row.id[0] for row in rows() if row.proof == "open"} == OPEN_SECTIONS


@pytest.mark.parametrize("row", [row for row in rows() if "#" in row.where], ids=lambda row: row.id)
def test_a_thread_is_named_as_owner_repository_and_number(row: Row) -> None:
    assert [thread for thread in row.where.split(", ") if not _THREAD.match(thread)] == []


def test_a_test_written_for_a_report_stands_on_the_page() -> None:
    """What was written for a report is not forgotten there; other tests may carry ids unnamed."""
    done = [row for row in rows() if row.proof != "open"]
    named = {name for row in done for name in row.tests}
    slugs = tuple(f"test_{row.id.replace('-', '').lower()}_" for row in done)
    written = {name for name in functions(Path(__file__).parent) if name.startswith(slugs)}
    assert sorted(written - named) == []
