"""Credential retirement: supersedes, retires and reports lent registry credentials (docs/credentials.md)."""

from __future__ import annotations

from functools import cache
from typing import Any

import nebula.cold_start  # noqa: F401 - before all that is large
from nebula.credentials.policy import policies
from nebula.events.batch import handle
from nebula.events.details import CredentialDetail, DetailType, SecretDetail, TickDetail
from nebula.events.envelope import Envelope, MalformedEventError
from nebula.settings import RetirementSettings
from nebula.wiring import build
from nebula.workflows.retire import acknowledge_revocation, retire_credentials, secret_changed
from nebula.workflows.services import Services


@cache
def settings() -> RetirementSettings:
    """This function's settings, read on its first event."""
    return RetirementSettings()


@cache
def services() -> Services:
    """The edges of this function, built on its first event and kept while it is warm."""
    return build("credential_retirement", settings())


def handler(event: object, _context: object) -> dict[str, Any]:
    """Take the schedule's event bare, or an SQS batch."""
    return handle(event, _act, services().telemetry)


def _act(envelope: Envelope) -> str:
    if envelope.detail_type == DetailType.CREDENTIAL_RETIREMENT_SCHEDULED:
        envelope.read(TickDetail)
        return f"{len(retire_credentials(services(), policies(settings())).outcomes)} rows with an outcome"
    if envelope.detail_type == DetailType.SECRET_CHANGED:
        secret = envelope.read(SecretDetail)
        return f"{secret_changed(services(), secret.cluster, secret.namespace, secret.name)} rows moved"
    if envelope.detail_type == DetailType.CREDENTIAL_REVOCATION_ACKNOWLEDGED:
        taken = acknowledge_revocation(services(), envelope.read(CredentialDetail).credential_key)
        return "acknowledged" if taken else "nothing to acknowledge"
    raise MalformedEventError("detail-type: not one that credential retirement is woken by")
