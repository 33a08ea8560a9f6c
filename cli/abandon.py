"""``nebula abandon CLAIM_ID --reason TEXT``: end a claim that nobody can confirm the end of.

What it rented may still be billed and is yours to end by hand. The ledger and an event keep your reason.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from dataclasses import replace

from cli import installation


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    installation.add_arguments(parser)
    parser.add_argument("claim_id", help="32 hex digits, as the Pod's annotation and the log show them")
    parser.add_argument("--reason", required=True, help="why; kept in the ledger and told by an event (no secrets)")


def run(arguments: argparse.Namespace) -> int:
    """0: done; 1: no such claim, it is over, or the installation did not answer; 2: wrong words."""
    if not arguments.reason.strip():
        print("abandon: --reason is empty, and it is all that the ledger will say of this", file=sys.stderr)
        return 2
    try:
        installation.load(arguments)
        with contextlib.redirect_stdout(sys.stderr), installation.asked(arguments):
            text = _abandoned(arguments.claim_id, arguments.reason)
    except installation.InstallationError as error:
        print(f"abandon: {error}", file=sys.stderr)
        return 1
    print(text)
    return 0


def _abandoned(claim_id: str, reason: str) -> str:
    from nebula.settings import Settings
    from nebula.wiring import build
    from nebula.workflows.abandon import NotAbandonedError, abandon

    services = replace(build("operator", Settings()), function="operator")
    try:
        claim = abandon(services, claim_id, reason)
    except NotAbandonedError as error:
        raise installation.InstallationError(str(error)) from None
    return f"abandoned: {claim.claim_id} ({claim.phase}); what it rented may still be billed"
