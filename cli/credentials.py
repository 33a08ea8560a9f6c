"""``nebula credentials``: what is lent where, what happens next with it, and what waits for a person.

``--plan`` rehearses the next retirement run and changes nothing. ``acknowledge KEY`` says that a superseded
password was revoked at its registry, or that an object nobody can see is really gone.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from dataclasses import replace

from cli import installation
from cli.credentials_table import COMMAND, planned, render_plan, render_report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    installation.add_arguments(parser)
    parser.add_argument("--output", choices=("table", "json"), default="table", help="table (the default) or json")
    parser.add_argument("--plan", action="store_true", help="what the next run would do, and why not more")
    parser.add_argument("--all", action="store_true", help="retired credentials too")
    parser.add_argument(
        "action",
        nargs="?",
        choices=("list", "acknowledge"),
        default="list",
        help="acknowledge KEY: its password is revoked, or its object is really gone; without: list",
    )
    parser.add_argument("key", nargs="?", help="of the credential to acknowledge, as the table's last lines show it")


def run(arguments: argparse.Namespace) -> int:
    """0: done; 1: the installation did not answer, or nothing waits under the key; 2: wrong words."""
    if (arguments.action == "acknowledge") != (arguments.key is not None):
        print("credentials: acknowledge needs a KEY, and nothing else takes one", file=sys.stderr)
        return 2
    try:
        installation.load(arguments)
        with contextlib.redirect_stdout(sys.stderr), installation.asked(arguments):
            text = _acknowledged(arguments.key) if arguments.action == "acknowledge" else _listed(arguments)
    except installation.InstallationError as error:
        print(f"credentials: {error}", file=sys.stderr)
        return 1
    print(text)
    return 0


def _listed(arguments: argparse.Namespace) -> str:
    """What belongs on stdout; logs go to stderr."""
    from nebula.credentials.policy import policies
    from nebula.settings import RetirementSettings
    from nebula.wiring import build
    from nebula.workflows.credential_report import plan_retirement, report_credentials

    settings = RetirementSettings()
    services = build("credential_retirement", settings)
    report = report_credentials(services, policies(settings), include_retired=arguments.all)
    plan = plan_retirement(services, policies(settings)) if arguments.plan else None
    now = services.clock.now()
    if arguments.output == "json":
        return json.dumps(report.model_dump(mode="json") if plan is None else planned(plan, report), indent=2)
    return render_report(report, now, _command(arguments)) if plan is None else render_plan(plan, report, now)


def _command(arguments: argparse.Namespace) -> str:
    """How this command was given, with ``{}`` for its words."""
    if arguments.env_file is not None:
        return f'make credentials ARGS="--env-file {arguments.env_file} {{}}"'
    return f'make credentials STACK={arguments.stack} ARGS="{{}}"' if arguments.stack is not None else COMMAND


def _acknowledged(key: str) -> str:
    """Check that something waits under the key, then say it on the bus: the retirement function writes it."""
    from nebula.domain.credential import CredentialKey
    from nebula.domain.unreadable import UnreadableCredentialError
    from nebula.settings import RetirementSettings
    from nebula.wiring import build
    from nebula.workflows.revoke import acknowledgeable, publish_acknowledgement

    try:
        parsed = CredentialKey.parse(key)
    except ValueError:
        raise installation.InstallationError(f"{key!r} is not a key; the table names those that wait") from None
    services = replace(build("credential_retirement", RetirementSettings()), function="operator")
    try:
        row = services.credentials.get(parsed)
    except UnreadableCredentialError as error:
        raise installation.InstallationError(str(error)) from None
    if row is None or not acknowledgeable(row):
        raise installation.InstallationError(f"nothing waits for a word about {key}; the table names those that wait")
    publish_acknowledgement(services, row)
    return f"acknowledged: {key} (the next table shows it; a reminder that was under way may still come)"
