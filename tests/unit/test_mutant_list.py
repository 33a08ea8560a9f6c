"""The mutants of ``make mutants`` still fit the code, and name tests that exist."""

from __future__ import annotations

import pytest

from tests.mutants.mutant import ROOT, Mutant
from tests.mutants.run import MUTANTS


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_fits_and_names_tests(mutant: Mutant) -> None:
    compile(mutant.applied(), mutant.file, "exec")
    assert mutant.tests
    for test in mutant.tests:
        file, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / "tests" / file).read_text()


def test_names_are_unique() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 12
