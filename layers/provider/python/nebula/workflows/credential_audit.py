"""The audit trail of lent credentials: one log line and one event per action, no secret in either."""

from __future__ import annotations

from nebula.domain.credential import Credential
from nebula.events.details import CredentialDetail, DetailType
from nebula.events.envelope import Event
from nebula.events.publisher import PublishError
from nebula.workflows.services import Services

_REASON_LENGTH = 512
_REGISTRY_LENGTH = 400


def credential_event(services: Services, action: DetailType, row: Credential, reason: str) -> Event:
    """The event that tells of an action on a credential."""
    detail = CredentialDetail(
        credential_key=str(row.key),
        provider=row.key.provider,
        registry=row.registry[:_REGISTRY_LENGTH],
        reason=reason[:_REASON_LENGTH],
    )
    return Event(source=services.source, detail_type=action, detail=detail)


def audit(services: Services, action: DetailType, row: Credential, reason: str) -> bool:
    """Log and publish what happened to a credential; returns whether the bus took the event.

    The log line is the record and comes first; a bus that refuses the event is logged and harms
    nothing else, because the ledger row already tells what happened.
    """
    services.telemetry.info(
        str(action),
        credential_key=str(row.key),
        provider=row.key.provider,
        provider_id=row.provider_id,
        registry=row.registry,
        user=row.username_hint,
        state=str(row.state),
        reason=reason,
    )
    try:
        services.publisher.publish([credential_event(services, action, row, reason)])
    except PublishError as error:
        services.telemetry.warning("event not published", credential_key=str(row.key), error=str(error))
        return False
    return True
