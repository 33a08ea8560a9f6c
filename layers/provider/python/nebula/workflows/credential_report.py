"""What an operator sees of lent credentials: every row, what happens next with it, and what the next run would do."""

from collections.abc import Sequence
from dataclasses import replace

from pydantic import AwareDatetime

from nebula.credentials.policy import Action, RetirementPolicies, judge, retirement_time
from nebula.domain.base import Model
from nebula.domain.credential import Credential, CredentialState
from nebula.domain.unreadable import UnreadableCredential
from nebula.events.memory import MemoryPublisher
from nebula.observability import MemoryTelemetry
from nebula.providers.base import RegistryCredentials
from nebula.providers.errors import ProviderError, ProviderUnconfiguredError
from nebula.stores.memory_credentials import MemoryCredentialStore
from nebula.workflows.lend import key_account
from nebula.workflows.retire import RetirementReport, retire_credentials
from nebula.workflows.retire_listing import Listing
from nebula.workflows.retire_outcome import UNREADABLE
from nebula.workflows.retire_provider import LIVE
from nebula.workflows.revoke import absence_unproved, acknowledgeable, awaits_revocation, newest
from nebula.workflows.services import Services

#: The state shown for objects with our name prefix that no row knows.
UNRECORDED = "Unrecorded"
#: The state shown for rows that cannot be read.
UNKNOWN = "Unknown"
_NEXT = {
    Action.NONE: "",
    Action.WAIT: "retire",
    Action.DEFER: "retire when unused",
    Action.RETIRE: "retire",
    Action.FINISH: "delete again",
}


class CredentialLine(Model):
    """One line of the report. ``next_at`` is None where time alone changes nothing.

    ``acknowledge`` tells that a person's word is waited for: on its absence (``unproved``), on its password's
    revocation (``revoke``), or on both. ``overdue_since`` tells that a retirement which was due then
    has failed since, for the last ``reason``.
    """

    key: str
    provider: str
    provider_id: str | None = None
    registry: str = ""
    user: str = ""
    sources: tuple[str, ...] = ()
    state: str
    created_at: AwareDatetime | None = None
    last_used_at: AwareDatetime | None = None
    live_workloads: int = 0
    next_action: str = ""
    next_at: AwareDatetime | None = None
    reason: str = ""
    acknowledge: bool = False
    unproved: bool = False
    revoke: bool = False
    overdue_since: AwareDatetime | None = None


class CredentialReport(Model):
    """Every credential that is lent, or waits for somebody; ``problems`` are providers that could not be listed."""

    lines: tuple[CredentialLine, ...] = ()
    problems: tuple[str, ...] = ()


def report_credentials(
    services: Services, policies: RetirementPolicies, *, include_retired: bool = False
) -> CredentialReport:
    """Read everything and change nothing; oldest first.

    A provider that cannot be listed is named, and its rows are shown; so are rows that cannot be read, by their keys.
    """
    unreadable: list[UnreadableCredential] = []
    every = services.credentials.all(include_retired=True, unreadable=unreadable)
    rows = sorted(every, key=lambda row: (row.key.provider, row.created_at))
    waiting = {str(row.key) for row in newest(rows, unreadable) if acknowledgeable(row)}
    shown = [
        row
        for row in rows
        if include_retired or row.state is not CredentialState.RETIRED or str(row.key) in waiting
    ]  # fmt: skip
    lines = [_line(services, policies, row, acknowledge=str(row.key) in waiting) for row in shown]
    lines += [_unknown(services, row) for row in unreadable]
    problems: list[str] = []
    for name in services.providers.names():
        try:
            lines += _unrecorded(services, name, rows, unreadable)
        except ProviderUnconfiguredError:
            continue
        except ProviderError as error:
            problems.append(f"{name}: {type(error).__name__.removesuffix('Error')}: {error}")
    return CredentialReport(lines=tuple(lines), problems=tuple(problems))


def plan_retirement(services: Services, policies: RetirementPolicies) -> RetirementReport:
    """What the next run would do, by doing it on a copy of the ledger with every deletion left out.

    Sources are read, claims counted and providers listed as the run would; nothing is written and no
    event or log line leaves.
    """
    copy = MemoryCredentialStore()
    unreadable: list[UnreadableCredential] = []
    for row in services.credentials.all(include_retired=True, unreadable=unreadable):
        copy.create(row)
    for held in unreadable:
        copy.hold(held)
    rehearsal = replace(
        services, credentials=copy, publisher=MemoryPublisher(services.clock), telemetry=MemoryTelemetry()
    )
    return retire_credentials(rehearsal, policies.rehearsed())


def _line(services: Services, policies: RetirementPolicies, row: Credential, *, acknowledge: bool) -> CredentialLine:
    retired = row.state is CredentialState.RETIRED
    live = 0 if retired else len(services.claims.find_by_credential(str(row.key)))
    policy = policies.of(row.key.provider)
    now = services.clock.now()
    verdict = judge(row, live, policy, now)
    due_at = min(now, retirement_time(row, policy)[0]) if verdict.action is Action.FINISH else verdict.due_at
    note = f" (put off: {row.note})" if row.note not in ("", LIVE) and not retired else ""
    failing = bool(note) and verdict.action in (Action.RETIRE, Action.FINISH)
    action = _NEXT[Action.DEFER if live else verdict.action]
    return CredentialLine(
        key=str(row.key),
        provider=row.key.provider,
        provider_id=row.provider_id,
        registry=row.registry,
        user=row.username_hint,
        sources=row.sources,
        state=str(row.state),
        created_at=row.created_at,
        last_used_at=row.last_used_at,
        live_workloads=live,
        next_action=f"{action} (dry run)" if policy.dry_run and action else action,
        next_at=due_at,
        reason=row.note if retired else verdict.reason + note,
        acknowledge=acknowledge,
        unproved=acknowledge and absence_unproved(row),
        revoke=acknowledge and awaits_revocation(row),
        overdue_since=due_at if failing else None,
    )


def _unknown(services: Services, row: UnreadableCredential) -> CredentialLine:
    return CredentialLine(
        key=row.key,
        provider=row.provider,
        state=UNKNOWN,
        live_workloads=len(services.claims.find_by_credential(row.key)),
        reason=f"{UNREADABLE} ({row.problem}): it stays",
    )


def _unrecorded(
    services: Services, name: str, rows: Sequence[Credential], unreadable: Sequence[UnreadableCredential]
) -> list[CredentialLine]:
    provider = services.providers.get(name)
    if not isinstance(provider, RegistryCredentials):
        return []
    own = [row for row in rows if row.key.provider == name]
    found = provider.list_registry_credentials()
    listing = Listing(found, own, account=key_account(provider), lender="", unreadable=unreadable)
    return [
        CredentialLine(key=unknown, provider=name, state=UNRECORDED, reason="no ledger row knows it: left alone")
        for unknown in listing.unrecorded()
    ]
