"""``make bench``: measures what the design sets budgets for, and reports.

A row that misses its limit is said and stops nothing. What could not be measured is said loudly, and the exit status
is 1.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from local.deployment import ROOT
from tests.benchmark import engine, idle, imports, layer, life, machine, placement, report, stack

DEFAULT_FILE = ROOT / ".local" / "bench.json"
PAGE = ROOT / "docs" / "performance.md"
Measure = Callable[[], dict[str, Any]]


def measures(options: argparse.Namespace) -> dict[str, Measure]:
    """The sections in the order in which they are measured: what is sensitive to a warm machine comes first."""
    known: dict[str, Any] = {}

    def engine_run() -> dict[str, Any]:
        known["engine"] = engine.run(options.pods)
        return dict(known["engine"])

    def linearity() -> dict[str, Any]:
        small = known.get("engine") or engine.run(options.pods)
        return {"small": small, "large": engine.run(options.linearity_pods)}

    return {
        "placement": placement.run,
        "import": imports.run,
        "engine": engine_run,
        "life": life.run,
        "idle": idle.run,
        "layer": layer.run,
        "linearity": linearity,
        "stack": lambda: stack.run(options.pods if options.stack_pods is None else options.stack_pods),
    }


def measure(
    wanted: Mapping[str, Measure], yardsticks: dict[str, float]
) -> tuple[dict[str, dict[str, Any] | None], dict[str, str]]:
    """Each section's figures, None where it failed, and why it did; ``yardsticks`` takes the machine's speed before."""
    sections: dict[str, dict[str, Any] | None] = {}
    failures: dict[str, str] = {}
    for name, run in wanted.items():
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        yardsticks[name] = machine.yardstick()
        try:
            sections[name] = run()
        except Exception as error:  # noqa: BLE001 - one section that fails must not hide the others
            traceback.print_exc(file=sys.stderr)
            sections[name], failures[name] = None, f"{type(error).__name__}: {error}"
    return sections, failures


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmark", description=__doc__)
    names = ("placement", "import", "engine", "life", "idle", "layer", "linearity", "stack")
    parser.add_argument("--only", action="append", choices=names, help="measure this section; may be repeated")
    parser.add_argument("--pods", type=int, default=500, help="Pods of the engine's and the stack's run")
    parser.add_argument("--linearity-pods", type=int, default=5000, help="Pods of the large run")
    parser.add_argument("--stack-pods", type=int, help="Pods of the stack's run, where it is to have fewer")
    parser.add_argument("--output", choices=("table", "json"), default="table", help="what goes to stdout")
    parser.add_argument("--file", type=Path, default=DEFAULT_FILE, help="where the JSON goes, or is read from")
    parser.add_argument(
        "--write-docs", action="store_true", help="measure nothing; put FILE's figures into docs/performance.md"
    )
    return parser.parse_args(arguments)


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    """End on TERM as on an interrupt: the stack's processes are in groups of their own and would live on."""
    raise KeyboardInterrupt


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write, print."""
    options = parse(arguments)
    signal.signal(signal.SIGTERM, _interrupted)
    if options.write_docs:
        report.write_page(json.loads(options.file.read_text(encoding="utf-8")), PAGE)
        return 0
    wanted = {name: run for name, run in measures(options).items() if not options.only or name in options.only}
    yardsticks: dict[str, float] = {}
    surroundings = {**machine.describe(), "yardstick_ms": yardsticks}
    sections, failures = measure(wanted, yardsticks)
    made = report.assemble(sections, failures, surroundings)
    report.write_json(made, options.file)
    print(json.dumps(made, indent=1) if options.output == "json" else report.table(made))
    return report.exit_status(made)


if __name__ == "__main__":
    sys.exit(main())
