"""What only a person can do: revoking a superseded password at its registry (docs/credentials.md)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from nebula.domain.credential import Credential, CredentialKey, CredentialState
from nebula.domain.unreadable import UnreadableCredential, UnreadableCredentialError
from nebula.events.details import DetailType
from nebula.events.envelope import MalformedEventError
from nebula.stores.credentials import CredentialConflictError
from nebula.workflows.credential_audit import audit, credential_event
from nebula.workflows.readable import tell_unreadable_credentials
from nebula.workflows.services import Services

#: How often the reminder is repeated until it is acknowledged.
REMIND_EVERY = timedelta(days=7)


def newest(rows: Sequence[Credential], unreadable: Sequence[UnreadableCredential] = ()) -> list[Credential]:
    """The highest generation of each password lent; an older one tells nothing of the password now.

    Of a password with a row that cannot be read nobody can tell whether it is still in use: it is left out.
    """
    latest: dict[str, Credential] = {}
    for row in sorted(rows, key=lambda row: row.key.generation):
        latest[row.key.line] = row
    for unknown in unreadable:
        latest.pop(unknown.line, None)
    return list(latest.values())


def awaits_revocation(row: Credential) -> bool:
    """Whether the newest row of a password asks for its revocation.

    A password that expires by itself (ECR) needs nobody, and of one that may be forgotten nothing is asked.
    """
    settled = (row.expires_at, row.revocation_acknowledged_at, row.forget_at)
    return row.superseded_at is not None and not any(settled)


def remind(
    services: Services, rows: Sequence[Credential], unreadable: Sequence[UnreadableCredential] = ()
) -> tuple[Credential, ...]:
    """Publish ``Credential Revocation Required`` where it is due; returns all rows, those that moved as written.

    The row notes the reminder only after the bus took it: one too many is better than none.
    """
    now = services.clock.now()
    due = {str(row.key) for row in newest(rows, unreadable) if awaits_revocation(row) and _reminder_due(row, now)}
    return tuple(_remind_one(services, row, now) if str(row.key) in due else row for row in rows)


def acknowledge_revocation(services: Services, credential_key: str) -> bool:
    """A person has revoked the password: no more reminders. Returns whether a row took it.

    For a row whose retirement waits because nobody can tell whether its object is gone, the same word
    settles that too. Raises MalformedEventError for a key that is none.
    """
    try:
        key = CredentialKey.parse(credential_key)
    except ValueError:
        raise MalformedEventError("detail.credential_key: not a credential key") from None
    try:
        row = services.credentials.get(key)
    except UnreadableCredentialError as error:
        tell_unreadable_credentials(services, [error.row])
        row = None
    if row is None or not acknowledgeable(row):
        services.telemetry.warning("nothing to acknowledge", credential_key=credential_key)
        return False
    now = services.clock.now()
    changes: dict[str, object] = {"revocation_acknowledged_at": now}
    if absence_unproved(row):
        changes |= {"state": CredentialState.RETIRED, "retired_at": now, "note": "absence acknowledged by an operator"}
    written = services.credentials.save(row, row.model_copy(update=changes))
    services.telemetry.info("revocation acknowledged", credential_key=credential_key, state=str(written.state))
    return True


def publish_acknowledgement(services: Services, row: Credential) -> None:
    """Say on the bus that a person acknowledges a row; the retirement function writes it. Raises ``PublishError``."""
    action = DetailType.CREDENTIAL_REVOCATION_ACKNOWLEDGED
    services.publisher.publish([credential_event(services, action, row, "by an operator")])


def acknowledgeable(row: Credential) -> bool:
    """Whether a row waits for a person's word."""
    return absence_unproved(row) or awaits_revocation(row)


def absence_unproved(row: Credential) -> bool:
    """Whether a retirement waits because nobody can tell that its object is gone."""
    return row.state is CredentialState.RETIRING and row.unseen_since is not None


def _reminder_due(row: Credential, now: datetime) -> bool:
    return row.revocation_announced_at is None or now >= row.revocation_announced_at + REMIND_EVERY


def _remind_one(services: Services, row: Credential, now: datetime) -> Credential:
    sources = ", ".join(row.sources[:3])
    reason = f"no Secret yields this password any more ({sources}); revoke it at {row.registry}, then acknowledge"
    if not audit(services, DetailType.CREDENTIAL_REVOCATION_REQUIRED, row, reason):
        return row
    try:
        return services.credentials.save(row, row.model_copy(update={"revocation_announced_at": now}))
    except CredentialConflictError:
        services.telemetry.info("credential moved while a reminder was sent", credential_key=str(row.key))
        return row
