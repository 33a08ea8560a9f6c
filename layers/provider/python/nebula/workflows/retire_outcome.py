"""What a retirement run says of each row, and how a row that cannot go yet is left."""

from enum import StrEnum

from nebula.domain.base import Model
from nebula.domain.credential import Credential, CredentialState
from nebula.events.details import DetailType
from nebula.stores.credentials import CredentialConflictError
from nebula.workflows.credential_audit import audit
from nebula.workflows.services import Services

#: Why a row that cannot be read stays.
UNREADABLE = "only a newer release can read its row"


class Kind(StrEnum):
    """What a run did with a row that was due. ``FAILED``: a person may have to look; it is tried again."""

    RETIRED = "Retired"
    PLANNED = "Planned"
    DEFERRED = "Deferred"
    FAILED = "Failed"


class Outcome(Model):
    """One row's part of a report."""

    key: str
    kind: Kind
    reason: str


class Outcomes(list[Outcome]):
    """The report of one run as it grows; each method also leaves the row as it now stands."""

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services

    def note(self, row: Credential, kind: Kind, reason: str) -> None:
        """Say it in the report alone: the row is not touched."""
        self.append(Outcome(key=str(row.key), kind=kind, reason=reason))

    def defer(self, row: Credential, reason: str, *, kind: Kind = Kind.DEFERRED) -> None:
        """Leave the row as it is, with the reason; told again only when the reason changes."""
        self._leave(row, row.model_copy(update={"note": reason}), kind)

    def unproved(self, row: Credential, reason: str) -> None:
        """Keep a row whose object is not seen, though nobody can tell whether it is gone: a person may."""
        since = row.unseen_since or self._services.clock.now()
        self._leave(row, row.model_copy(update={"note": reason, "unseen_since": since}), Kind.FAILED)

    def give_back(
        self, row: Credential, reason: str, remaining_id: str | None = None, *, kind: Kind = Kind.DEFERRED
    ) -> None:
        """Return a row that was being retired to ``Superseded``: something still uses its object."""
        changes = {
            "state": CredentialState.SUPERSEDED,
            "retiring_at": None,
            "unseen_since": None,
            "provider_id": remaining_id or row.provider_id,
            "note": reason,
        }
        self._leave(row, row.model_copy(update=changes), kind)

    def retired(self, row: Credential, why: str) -> None:
        """The object is confirmed gone."""
        now = self._services.clock.now()
        done = row.model_copy(update={"state": CredentialState.RETIRED, "retired_at": now, "note": why})
        try:
            written = self._services.credentials.save(row, done)
        except CredentialConflictError:
            self.note(row, Kind.DEFERRED, "another run is at it")
            return
        self.note(written, Kind.RETIRED, why)
        audit(self._services, DetailType.CREDENTIAL_RETIRED, written, why)

    def _leave(self, row: Credential, after: Credential, kind: Kind) -> None:
        self.note(row, kind, after.note)
        if after == row:
            return
        try:
            written = self._services.credentials.save(row, after)
        except CredentialConflictError:
            self._services.telemetry.info("credential moved meanwhile", credential_key=str(row.key))
            return
        if row.note != after.note:
            audit(self._services, DetailType.CREDENTIAL_RETIREMENT_DEFERRED, written, after.note)
