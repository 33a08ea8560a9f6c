"""Retirement of lent credentials: what the schedule and a changed Secret set off (docs/credentials.md)."""

from collections.abc import Sequence

from nebula.credentials.policy import RetirementPolicies, past_max_age
from nebula.domain.base import Model
from nebula.domain.credential import Credential
from nebula.domain.unreadable import UnreadableCredential
from nebula.stores.credentials import CredentialConflictError
from nebula.workflows.forget import let_forget
from nebula.workflows.readable import tell_unreadable_credentials
from nebula.workflows.retire_outcome import UNREADABLE, Kind, Outcome
from nebula.workflows.retire_provider import ProviderRun
from nebula.workflows.revoke import acknowledge_revocation, remind
from nebula.workflows.services import Services
from nebula.workflows.supersede import refresh_sources, secret_changed

__all__ = ["RetirementReport", "acknowledge_revocation", "refresh_sources", "retire_credentials", "secret_changed"]


class RetirementReport(Model):
    """What one run did, per row; ``unrecorded`` are ``provider/name`` of objects that no row knows."""

    outcomes: tuple[Outcome, ...] = ()
    unrecorded: tuple[str, ...] = ()

    def of(self, kind: Kind) -> tuple[Outcome, ...]:
        """The outcomes of one kind."""
        return tuple(outcome for outcome in self.outcomes if outcome.kind is kind)


def retire_credentials(services: Services, policies: RetirementPolicies) -> RetirementReport:
    """One run: read the sources, remind of revocations, let go of what is over, then retire what is due.

    Every step is a conditional write on what was read, so that a run may die anywhere and the next one
    goes on from the rows. A provider that fails is named in the report and stops no other; so is a row
    that cannot be read: its object stays.
    """
    unreadable: list[UnreadableCredential] = []
    rows = tuple(services.credentials.all(include_retired=True, unreadable=unreadable))
    tell_unreadable_credentials(services, unreadable)
    rows = refresh_sources(services, rows, limit=policies.source_limit)
    rows = let_forget(services, remind(services, rows, unreadable), unreadable)
    rows = tuple(_close_aged(services, row, policies) for row in rows)
    names = _providers(services, rows)
    runs = [_provider_run(services, policies, name, rows, unreadable) for name in names]
    for run in runs:
        run.go(services.clock.now() + policies.run_time / len(names))
    kept = (Outcome(key=row.key, kind=Kind.DEFERRED, reason=f"{UNREADABLE} ({row.problem})") for row in unreadable)
    report = RetirementReport(
        outcomes=(*(outcome for run in runs for outcome in run.outcomes), *kept),
        unrecorded=tuple(f"{run.name}/{found}" for run in runs for found in run.unrecorded),
    )
    _tell(services, report)
    return report


def _providers(services: Services, rows: Sequence[Credential]) -> list[str]:
    """Providers with rows, and those known without, for what lies there unrecorded."""
    return sorted({row.key.provider for row in rows} | set(services.providers.names()))


def _provider_run(
    services: Services,
    policies: RetirementPolicies,
    name: str,
    rows: Sequence[Credential],
    unreadable: Sequence[UnreadableCredential],
) -> ProviderRun:
    own = tuple(row for row in rows if row.key.provider == name)
    return ProviderRun(services, policies, name, own, [row for row in unreadable if row.provider == name])


def _close_aged(services: Services, row: Credential, policies: RetirementPolicies) -> Credential:
    """Close a row past its maximum age: the next Pod makes the next generation."""
    if not past_max_age(row, policies.of(row.key.provider), services.clock.now()):
        return row
    try:
        return services.credentials.save(row, row.model_copy(update={"aged_out": True}))
    except CredentialConflictError:
        return row


def _tell(services: Services, report: RetirementReport) -> None:
    counts = {str(kind): len(report.of(kind)) for kind in Kind}
    services.telemetry.info("retirement run", unrecorded=report.unrecorded[:20], **counts)
    services.telemetry.count("CredentialsRetired", counts[Kind.RETIRED])
    services.telemetry.count("CredentialRetirementsFailed", counts[Kind.FAILED])
