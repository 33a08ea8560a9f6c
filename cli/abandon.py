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
    """0: done; 1: no such claim, it is over, or the installation did not answer."""
    try:
        installation.load(arguments)
        with contextlib.redirect_stdout(sys.stderr):
            text = _abandoned(arguments.claim_id, arguments.reason)
    except installation.InstallationError as error:
        print(f"abandon: {error}", file=sys.stderr)
        return 1
    print(text)
    return 0


def _abandoned(claim_id: str, reason: str) -> str:
    from botocore.exceptions import BotoCoreError, ClientError
    from nebula.parameters import ParameterUnavailableError
    from nebula.settings import Settings
    from nebula.wiring import build
    from nebula.workflows.abandon import NotAbandonedError, abandon
    from pydantic import ValidationError

    try:
        services = replace(build("operator", Settings()), function="operator")
        claim = abandon(services, claim_id, reason)
    except NotAbandonedError as error:
        raise installation.InstallationError(str(error)) from None
    except ValidationError as error:
        missing = ", ".join(f"NEBULA_{'_'.join(map(str, e['loc'])).upper()}" for e in error.errors(include_input=False))
        raise installation.InstallationError(f"settings missing or wrong: {missing}") from None
    except (BotoCoreError, ClientError, ParameterUnavailableError) as error:
        raise installation.InstallationError(f"AWS did not answer: {error}") from None
    return f"abandoned: {claim.claim_id} ({claim.phase}); what it rented may still be billed"
