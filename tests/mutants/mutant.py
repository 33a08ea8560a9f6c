"""A mutant: one small patch that removes a behaviour, and the tests that must notice."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ROOT / "layers" / "provider" / "python"


class StaleMutantError(Exception):
    """The text that a mutant replaces is not there exactly once."""


@dataclass(frozen=True)
class Mutant:
    """``old`` in ``file`` (below ``nebula/``) becomes ``new``; each of ``tests`` must turn red.

    A test is a file below ``tests/`` with ``::`` and the test's name, parameters left out.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def applied(self) -> str:
        """The patched text of the file. Raises ``StaleMutantError``."""
        text = (PRODUCT / "nebula" / self.file).read_text()
        if text.count(self.old) != 1:
            raise StaleMutantError(f"{self.name}: the text is {text.count(self.old)} times in {self.file}")
        return text.replace(self.old, self.new)


class Area:
    """Makes the mutants of one area, whose name comes before theirs."""

    def __init__(self, area: str) -> None:
        self._area = area

    def __call__(self, name: str, file: str, old: str, new: str, *tests: str) -> Mutant:
        """A mutant of the area."""
        return Mutant(f"{self._area}: {name}", file, old, new, tests)
