"""``docs/placement.md`` against the code: its examples, its reasons, its defaults."""

from __future__ import annotations

import re

import pytest
from nebula.placement.verdict import Reason

from tests.support.placement_page import BLOCKED, EXAMPLES, PAGE, filled

TEXT = PAGE.read_text(encoding="utf-8")


def test_every_example_is_as_the_code_answers() -> None:
    """After a change: ``python -m tests.support.placement_page``."""
    assert filled(TEXT) == TEXT


def test_every_example_is_on_the_page_once() -> None:
    assert sorted(match["name"] for match in BLOCKED.finditer(TEXT)) == sorted(EXAMPLES)


def test_the_reasons_are_listed_in_their_order() -> None:
    table = TEXT.split("| reason |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `([a-z_]+)` \|", table, re.MULTILINE) == [str(reason) for reason in Reason]


@pytest.mark.parametrize("name", ["tiers", "ordered", "larger", "shortage", "shipped"])
def test_examples_that_place_do(name: str) -> None:
    assert "\nplaced: " in EXAMPLES[name].answer()


def test_the_example_that_waits_does() -> None:
    assert "\ndeferred: " in EXAMPLES["deferred"].answer()
