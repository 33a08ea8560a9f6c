"""Writes what ``kubectl describe pod`` shows into ``docs/kubernetes.md``: ``python -m tests.support.describe_page``."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.describe import describe
from tests.support.described_pods import CASES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "kubernetes.md"


def page(text: str, case: str) -> str:
    """The page with one case's text renewed; ValueError when it has no place for it."""
    begin = f"<!-- describe: {case}, from a run: python -m tests.support.describe_page -->"
    pattern = re.compile(rf"{re.escape(begin)}\n\n```text\n.*?```\n", re.DOTALL)
    told = describe(CASES[case]())
    renewed, places = pattern.subn(lambda _: f"{begin}\n\n```text\n{told}```\n", text)
    if places != 1:
        raise ValueError(f"the page has {places} places for {case}")
    return renewed


def main() -> None:
    """Renew the page in place."""
    text = PAGE.read_text()
    for case in CASES:
        text = page(text, case)
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
