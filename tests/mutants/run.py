"""Show that the tests notice: apply each mutant to a copy of the product and run its tests.

``python -m tests.mutants.run [WORD ...]`` runs the mutants whose name holds one of the words (default:
all). Exit 0 when the tests are green without a patch and red with each.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.credentials import MUTANTS as CREDENTIALS
from tests.mutants.lifecycle import MUTANTS as LIFECYCLE
from tests.mutants.mutant import PRODUCT, ROOT, Mutant
from tests.mutants.runpod_calls import MUTANTS as RUNPOD_CALLS
from tests.mutants.runpod_words import MUTANTS as RUNPOD_WORDS

MUTANTS: tuple[Mutant, ...] = (*RUNPOD_WORDS, *RUNPOD_CALLS, *CREDENTIALS, *LIFECYCLE)
FAILED = 1
SECONDS = 300


def pytest(product: Path, tests: Iterable[str], *, stop: bool) -> int:
    """Run some tests against a copy of the product; pytest's exit code (1: some failed)."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", f"pythonpath=. {product}"]
    return subprocess.run(
        [*command, *(["-x"] if stop else []), *(f"tests/{test}" for test in tests)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=SECONDS,
        check=False,
    ).returncode


def survives(mutant: Mutant) -> str:
    """Which named test stays green; empty when all turn red."""
    with tempfile.TemporaryDirectory() as directory:
        product = Path(directory)
        shutil.copytree(PRODUCT / "nebula", product / "nebula", ignore=shutil.ignore_patterns("__pycache__"))
        (product / "nebula" / mutant.file).write_text(mutant.applied())
        for test in mutant.tests:
            code = pytest(product, [test], stop=True)
            if code != FAILED:
                return f"{test} (pytest said {code})"
    return ""


def main(words: Sequence[str]) -> int:
    """Run the chosen mutants, two at a time."""
    chosen = [one for one in MUTANTS if not words or any(word in one.name for word in words)]
    if not chosen:
        print(f"no mutant is named so; there are {', '.join(one.name for one in MUTANTS)}")
        return 2
    named = sorted({test for one in chosen for test in one.tests})
    started = time.monotonic()
    if pytest(PRODUCT, named, stop=False) != 0:
        print(f"the {len(named)} tests are not green without a mutant", flush=True)
        return 1
    left = 0
    with ThreadPoolExecutor(max_workers=2) as pool:
        for mutant, survivor in zip(chosen, pool.map(survives, chosen), strict=True):
            left += bool(survivor)
            print(f"{'SURVIVES' if survivor else 'killed  '}  {mutant.name}  {survivor}".rstrip(), flush=True)
    print(f"{len(chosen) - left} of {len(chosen)} mutants killed in {time.monotonic() - started:.0f} s")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
