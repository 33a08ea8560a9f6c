"""One retirement run at one provider: list, take each due row, delete, list again, confirm (docs/credentials.md)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime

from nebula.credentials.policy import Action, RetirementPolicies, judge, retirement_time
from nebula.domain.credential import Credential, CredentialState
from nebula.domain.unreadable import UnreadableCredential
from nebula.providers.base import RegistryCredentials
from nebula.providers.errors import (
    AuthenticationError,
    CredentialInUseError,
    InsufficientBalanceError,
    ProviderError,
    ProviderUnavailableError,
    RateLimitedError,
)
from nebula.stores.credentials import CredentialConflictError
from nebula.workflows.accounts import account_of
from nebula.workflows.lend import key_account
from nebula.workflows.retire_listing import Listing
from nebula.workflows.retire_outcome import Kind, Outcomes
from nebula.workflows.services import Services

#: After so many calls in a row without an answer, the rest of a provider is left to the next run.
MAX_SILENCES = 3
#: Errors that the next call would meet too.
_GENERAL = (RateLimitedError, AuthenticationError, InsufficientBalanceError)
LIVE = "live workloads use it"
CAME_BACK = "its object had come back"
UNPROVED = "not listed, but the key may show another account; acknowledge it if it is gone"


class ProviderRun:
    """The state of one run at one provider. ``go`` fills ``outcomes`` and ``unrecorded``."""

    def __init__(
        self,
        services: Services,
        policies: RetirementPolicies,
        name: str,
        rows: tuple[Credential, ...],
        unreadable: Sequence[UnreadableCredential] = (),
    ) -> None:
        self.name = name
        self.outcomes = Outcomes(services)
        self.unrecorded: tuple[str, ...] = ()
        self._services = services
        self._policies = policies
        self._policy = policies.of(name)
        self._rows = rows
        self._unreadable = unreadable
        self._deletions = 0
        self._silences = 0
        self._stopped = ""

    def go(self, stop_at: datetime) -> None:
        """Retire what is due; begins nothing after ``stop_at``. Raises no ``ProviderError``."""
        due = self._due()
        try:
            provider = self._services.providers.get(self.name)
            if not isinstance(provider, RegistryCredentials):
                return
            listing = self._list(provider, key_account(provider), account_of(self._services, provider))
        except ProviderError as error:
            for row in due:
                self._fail(row, error)
            return
        self.unrecorded = listing.unrecorded()
        taken = [self._retire(provider, listing, row, stop_at) for row in due]
        self._delete_resurrected(provider, listing)
        self._confirm(provider, listing, [row for row in taken if row is not None])

    def _list(self, registries: RegistryCredentials, account: str, lender: str) -> Listing:
        found = registries.list_registry_credentials()
        return Listing(found, self._rows, account=account, lender=lender, unreadable=self._unreadable)

    def _due(self) -> list[Credential]:
        """Rows that time allows to retire: what was never put off first, oldest first.

        Those that were put off before follow in an order that differs from run to run, so that none of
        them can keep the others from their turn.
        """
        now = self._services.clock.now()
        verdicts = [(row, judge(row, 0, self._policy, now)) for row in self._rows]
        due = [(row, verdict) for row, verdict in verdicts if verdict.action in (Action.RETIRE, Action.FINISH)]

        def order(item: tuple[Credential, object]) -> tuple[bool, str]:
            row, _ = item
            if not row.note:
                return False, row.last_used_at.isoformat()
            return True, hashlib.sha256(f"{row.key}{now}".encode()).hexdigest()

        return [row for row, _ in sorted(due, key=order)]

    def _retire(
        self, registries: RegistryCredentials, listing: Listing, row: Credential, stop_at: datetime
    ) -> Credential | None:
        """Take a row and delete its objects; returns the row while its end is to be confirmed."""
        taken = self._take(listing, row, stop_at)
        if taken is None:
            return None
        remaining = list(listing.ids(taken))
        if listing.has(taken) and not remaining:
            self.outcomes.defer(taken, f"{self.name} lists it without an id", kind=Kind.FAILED)
            return None
        try:
            while remaining:
                registries.delete_registry_credential(remaining[0])
                remaining.pop(0)
        except CredentialInUseError:
            self._silences = 0
            reason = f"{self.name} says that a workload still uses it"
            self.outcomes.give_back(taken, reason, remaining[0], kind=Kind.FAILED)
            return None
        except ProviderError as error:
            self._fail(taken, error)
            return None
        self._silences = 0
        return taken

    def _take(self, listing: Listing, row: Credential, stop_at: datetime) -> Credential | None:
        """The order of checks of docs/credentials.md, up to the conditional write that makes the row ours."""
        now = self._services.clock.now()
        if self._stopped or now >= stop_at:
            self.outcomes.note(row, Kind.DEFERRED, self._stopped or "no time left in this run")
            return None
        if row.key.account != listing.account:
            self.outcomes.defer(row, "it was lent to another account than the key's", kind=Kind.FAILED)
            return None
        if self._in_use(row):
            return None
        if row.retiring_at is not None and now < row.retiring_at + self._policies.lease:
            self.outcomes.note(row, Kind.DEFERRED, "another run is at it")
            return None
        if self._deletions >= self._policies.limit:
            self.outcomes.note(row, Kind.DEFERRED, "the limit of one run is reached")
            return None
        self._deletions += 1
        if self._policy.dry_run:
            self.outcomes.note(row, Kind.PLANNED, self._why(row))
            return None
        return self._taken(row, now, listing)

    def _taken(self, row: Credential, now: datetime, listing: Listing) -> Credential | None:
        """Write ``Retiring`` on the condition that nobody used the row; look at the claims once more after."""
        changes: dict[str, object] = {"state": CredentialState.RETIRING, "retiring_at": now}
        if listing.has(row):
            changes |= {"lent_to": listing.lender, "unseen_since": None}
        try:
            taken = self._services.credentials.save(row, row.model_copy(update=changes))
        except CredentialConflictError:
            self.outcomes.note(row, Kind.DEFERRED, "it was used, or taken by another run, meanwhile")
            return None
        return None if self._in_use(taken) else taken

    def _in_use(self, row: Credential) -> bool:
        """Whether live claims carry the row; if so it is left, out of ``Retiring`` again."""
        count = len(self._services.claims.find_by_credential(str(row.key)))
        if not count:
            return False
        if row.state is CredentialState.RETIRING:
            self.outcomes.give_back(row, LIVE)
        else:
            self.outcomes.defer(row, LIVE)
        return True

    def _confirm(self, registries: RegistryCredentials, before: Listing, taken: list[Credential]) -> None:
        """List again; what is proved gone is ``Retired``, the rest stays ``Retiring`` for the next run."""
        if not taken:
            return
        try:
            listing = self._list(registries, before.account, before.lender)
        except ProviderError as error:
            for row in taken:
                self._fail(row, error)
            return
        for row in taken:
            if listing.proves_absence(row):
                self.outcomes.retired(row, self._why(row))
            elif listing.has(row):
                self.outcomes.defer(row, f"{self.name} accepted its deletion and still lists it", kind=Kind.FAILED)
            else:
                self.outcomes.unproved(row, UNPROVED)

    def _delete_resurrected(self, registries: RegistryCredentials, listing: Listing) -> None:
        """Delete objects that came back under a retired row: no Pod is ever given one of those."""
        for row in listing.resurrected():
            if self._stopped or self._services.claims.find_by_credential(str(row.key)):
                continue
            if self._policy.dry_run:
                self.outcomes.note(row, Kind.PLANNED, CAME_BACK)
                continue
            try:
                for object_id in listing.ids(row):
                    registries.delete_registry_credential(object_id)
            except ProviderError as error:
                self._fail(row, error)
                continue
            self.outcomes.note(row, Kind.RETIRED, CAME_BACK)
            self._services.telemetry.warning("object of a retired credential deleted", credential_key=str(row.key))

    def _why(self, row: Credential) -> str:
        return retirement_time(row, self._policy)[1]

    def _fail(self, row: Credential, error: ProviderError) -> None:
        """Put a row off for a provider's error; a general one puts off the rest of the provider too."""
        name = type(error).__name__.removesuffix("Error")
        self._services.telemetry.warning(
            "credential not retired", credential_key=str(row.key), provider=self.name, error=str(error)
        )
        self._silences = self._silences + 1 if isinstance(error, ProviderUnavailableError) else 0
        if isinstance(error, _GENERAL) or self._silences >= MAX_SILENCES:
            self._stopped = f"{self.name}: {name}"
        reason = f"{self.name}: {name} {error.code}".rstrip()
        if row.state is CredentialState.RETIRED:
            self.outcomes.note(row, Kind.FAILED, reason)
        else:
            self.outcomes.defer(row, reason, kind=Kind.FAILED)
