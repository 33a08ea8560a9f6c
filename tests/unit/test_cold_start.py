"""A function looks for garbage seldom while it starts, and as ever once it is built."""

from __future__ import annotations

import ast
import gc
import importlib
from collections.abc import Iterator

import pytest
from nebula import cold_start

from local.deployment import ROOT

APPS = sorted((ROOT / "functions").glob("*/app.py"))


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Leave the collector as it was found."""
    found = gc.get_threshold()
    yield
    gc.set_threshold(*found)


def test_importing_it_makes_looks_rare_and_the_end_gives_pythons_own_setting_back() -> None:
    gc.set_threshold(700, 11, 12)
    importlib.reload(cold_start)
    assert gc.get_threshold()[:2] == (cold_start.OBJECTS_BETWEEN_LOOKS, 11)
    cold_start.over()
    assert gc.get_threshold()[:2] == (700, 11)


@pytest.mark.parametrize("app", APPS, ids=[app.parent.name for app in APPS])
def test_every_function_begins_with_it(app: object) -> None:
    first = next(
        name
        for node in ast.parse((ROOT / str(app)).read_text()).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
        if name.startswith("nebula")
    )
    assert first == "nebula.cold_start"
