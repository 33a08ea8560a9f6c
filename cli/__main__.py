"""``nebula <command>``: one module per command, imported only when it is asked for."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast


class Command(Protocol):
    """What the module of a command has."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command's options."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Do it; the exit code."""


#: Command → (module, one line of help).
COMMANDS: dict[str, tuple[str, str]] = {
    "explain": ("cli.explain", "what placement would decide for a Pod, and why not otherwise"),
    "gating": ("cli.gating", "which gate policy a cluster's API server can run, and applying it"),
    "abandon": ("cli.abandon", "end a claim whose end nobody can confirm; what it rented may still be billed"),
    "credentials": ("cli.credentials", "which registry credentials are lent, until when, and what waits for a person"),
}


def main(words: Sequence[str] | None = None) -> int:
    """Run one command. Wrong words end with usage and exit code 2."""
    given = list(sys.argv[1:] if words is None else words)
    parser = argparse.ArgumentParser(prog="nebula", description="The operator's command.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    chosen = given[0] if given else ""
    module: Command | None = None
    for name, (path, text) in COMMANDS.items():
        sub = commands.add_parser(name, help=text, description=text)
        if name == chosen:
            module = cast("Command", import_module(path))
            module.add_arguments(sub)
    arguments = parser.parse_args(given)
    return 2 if module is None else module.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
