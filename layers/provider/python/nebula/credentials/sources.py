"""What the Secrets that once yielded a credential say about it now."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from nebula.domain.credential import Credential, CredentialState


class Yield(StrEnum):
    """Whether one Secret yields one credential: unknown when the Secret cannot be read."""

    YES = "Yes"
    NO = "No"
    UNKNOWN = "Unknown"


def reconcile(row: Credential, answers: Mapping[str, Yield], now: datetime) -> Credential:
    """The row as its sources have it; the same object when nothing changes.

    ``answers`` holds one answer per source that was asked; any other is unknown. One Secret that
    yields the password keeps the row ``Active``, and Secrets that do not any more are dropped from it.
    It is superseded only when every source was read and none yields it; then the sources stay, so
    that a rollback is noticed. Silence changes nothing.
    """
    if row.state not in (CredentialState.ACTIVE, CredentialState.SUPERSEDED):
        return row
    said = {source: answers.get(source, Yield.UNKNOWN) for source in row.sources}
    if Yield.YES in said.values():
        return _active(row, tuple(source for source, answer in said.items() if answer is not Yield.NO))
    if Yield.UNKNOWN in said.values() or row.superseded_at is not None:
        return row
    return row.model_copy(update={"state": CredentialState.SUPERSEDED, "superseded_at": now})


def _active(row: Credential, sources: tuple[str, ...]) -> Credential:
    if row.state is CredentialState.ACTIVE and row.sources == sources:
        return row
    return row.model_copy(
        update={
            "state": CredentialState.ACTIVE,
            "sources": sources,
            "superseded_at": None,
            "revocation_announced_at": None,
            "revocation_acknowledged_at": None,
        }
    )
