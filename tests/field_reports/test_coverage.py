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


@pytest.mark.parametrize("row", [row for row in rows() if "#" in row.where], ids=lambda row: row.id)
def test_a_thread_is_named_as_owner_repository_and_number(row: Row) -> None:
    assert [thread for thread in row.where.split(", ") if not _THREAD.match(thread)] == []


def test_a_test_written_for_a_report_stands_on_the_page() -> None:
    """What was written for a report is not forgotten there; other tests may carry ids unnamed."""
    named = {name for row in rows() for name in row.tests}
    slugs = tuple(f"test_{row.id.replace('-', '').lower()}_" for row in rows())
    written = {name for name in functions(Path(__file__).parent) if name.startswith(slugs)}
    assert sorted(written - named) == []


#: Minutes of the schedule that one step of a scenario may play; longer waits move the clock instead.
MOST_MINUTES = 25
_HEAVY = frozenset({"hypothesis", "multiprocessing", "socket", "subprocess", "time"})


@pytest.mark.parametrize("path", sorted(Path(__file__).parent.glob("*.py")), ids=lambda path: path.stem)
def test_a_scenario_is_short_and_waits_by_the_hand_clock_only(path: Path) -> None:
    """What keeps all of them within seconds: no sleeps, processes, sockets or long runs of the schedule."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
            assert str(module).partition(".")[0] not in _HEAVY, module
        elif isinstance(node, ast.Attribute):
            assert node.attr not in ("slow", "network", "apiserver"), node.lineno
        elif isinstance(node, ast.Call):
            assert _minutes(node) <= MOST_MINUTES, node.lineno


def _minutes(call: ast.Call) -> int:
    """How many minutes of the schedule a call plays: ``world.run(n)``, ``until_true(…, minutes=n)``."""
    asked = [keyword.value for keyword in call.keywords if keyword.arg == "minutes"]
    if isinstance(call.func, ast.Attribute) and call.func.attr == "run":
        asked += call.args[:1]
    return max((one.value for one in asked if isinstance(one, ast.Constant) and isinstance(one.value, int)), default=0)
