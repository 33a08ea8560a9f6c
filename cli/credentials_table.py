"""Lent credentials as text."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from nebula.domain.credential import CredentialKey
from nebula.workflows.credential_report import UNRECORDED, CredentialLine, CredentialReport
from nebula.workflows.retire import RetirementReport

from cli.table import columns

HEADERS = (
    "provider", "id", "registry", "user", "sources", "state", "created", "last used", "live", "next", "when", "why",
)  # fmt: skip
#: How the command is given where nothing else is said.
COMMAND = 'make credentials ARGS="{}"'
RUNBOOK = "docs/credentials.md"
_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)
_MINUTE = timedelta(minutes=1)


def render_report(report: CredentialReport, now: datetime, command: str = COMMAND) -> str:
    """The table, then what a person has to do, with the words to type, then what could not be read.

    ``command`` is how this installation is spoken to, with ``{}`` where the words go.
    """
    if not report.lines:
        text = ["no credential is lent"]
    else:
        text = columns([HEADERS, *(_row(line, now) for line in report.lines)])
    overdue = [line for line in report.lines if line.overdue_since is not None]
    waiting = [line for line in report.lines if line.acknowledge]
    if overdue:
        text += ["", f"overdue, tried again each hour ({RUNBOOK}#retirement-overdue says what each reason asks for):"]
        text += [f"  {line.key}: due {_since(line, now)}, {line.reason}" for line in overdue]
    if waiting:
        text += ["", f"waiting for a person ({RUNBOOK}#acknowledge):"]
        text += [f"  {_asked(line)}, then\n    {command.format(f'acknowledge {line.key}')}" for line in waiting]
    if any(line.state == UNRECORDED for line in report.lines):
        text += ["", f"Unrecorded is left alone: look whose it is ({RUNBOOK}#unrecorded)"]
    return "\n".join([*text, *_problems(report)])


def render_plan(plan: RetirementReport, report: CredentialReport, now: datetime) -> str:
    """What the next run does with each credential that is due, why it leaves the others, what is not ours."""
    text = [f"{outcome.kind}: {outcome.key}: {outcome.reason}" for outcome in plan.outcomes]
    text += [
        f"Waiting: {line.key}: {line.next_action} {_when(line, now)}: {line.reason}" for line in _waiting(plan, report)
    ]
    text += [f"Unrecorded: {name}: left alone" for name in plan.unrecorded]
    text += _problems(report)
    return "\n".join(text or ["no credential is lent"])


def planned(plan: RetirementReport, report: CredentialReport) -> dict[str, Any]:
    """The same as plain data."""
    waiting = [line.model_dump(mode="json") for line in _waiting(plan, report)]
    return {**plan.model_dump(mode="json"), "waiting": waiting, "problems": list(report.problems)}


def _waiting(plan: RetirementReport, report: CredentialReport) -> list[CredentialLine]:
    """What the next run leaves for a later one."""
    due = {outcome.key for outcome in plan.outcomes}
    return [line for line in report.lines if line.key not in due and line.next_at is not None]


def _problems(report: CredentialReport) -> list[str]:
    """Providers that could not be listed; their rows are shown all the same."""
    return [f"problem: {said}: whether something unrecorded lies there is not known" for said in report.problems]


def age(then: datetime | None, now: datetime) -> str:
    """``3d``, ``5h``, ``12m`` ago, or ``in 2h``, ``in 6d22h``."""
    if then is None:
        return "-"
    distance = abs(now - then)
    unit, letter = next(
        ((unit, letter) for unit, letter in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m")) if distance >= unit),
        (_MINUTE, "m"),
    )
    count = f"{distance // unit}{letter}"
    if then <= now:
        return count
    hours = distance % _DAY // _HOUR if unit == _DAY else 0
    return f"in {count}{f'{hours}h' if hours else ''}"


def _since(line: CredentialLine, now: datetime) -> str:
    return f"{age(line.overdue_since, now)} ago"


def _asked(line: CredentialLine) -> str:
    """What a person is asked to do before the word."""
    asked = []
    if line.unproved:
        name = CredentialKey.parse(line.key).object_name
        asked.append(f"make sure that no account of yours at {line.provider} has the registry credential {name}")
    if line.revoke:
        source = ", ".join(line.sources) or "?"
        asked.append(f"revoke the password of user {line.user} at {line.registry} (it came from {source})")
    return " and ".join(asked)


def _row(line: CredentialLine, now: datetime) -> tuple[str, ...]:
    return (
        line.provider,
        line.provider_id or "-",
        line.registry or line.key,
        line.user or "-",
        ", ".join(line.sources) or "-",
        line.state,
        age(line.created_at, now),
        age(line.last_used_at, now),
        str(line.live_workloads),
        line.next_action or "-",
        _when(line, now),
        line.reason,
    )


def _when(line: CredentialLine, now: datetime) -> str:
    if line.next_at is None:
        return "-"
    return age(line.next_at, now) if line.next_at > now else "next run"
