"""Rows of the ledgers that only a newer release can read: told of, and never acted upon.

Claims live. Nothing that they may hold is reclaimed: no instance with their mark, no Node of their cluster, no
budget, no registry credential. They move again when the release that wrote them is back.
A lent credential is in use. A block is none where it cannot be told what it blocks, or until when.
"""

from __future__ import annotations

from collections.abc import Sequence

from nebula.domain.claim import Claim
from nebula.domain.unreadable import UnreadableBlock, UnreadableClaim, UnreadableClaimError, UnreadableCredential
from nebula.workflows.services import Services

Unreadable = UnreadableClaim | UnreadableCredential | UnreadableBlock

#: Rows named in one log line.
_NAMED = 20


def claim_at(services: Services, claim_id: str) -> Claim | UnreadableClaim | None:
    """The claim, None where there is none; one that cannot be read is told of, and counted as a defect."""
    try:
        return services.claims.get(claim_id)
    except UnreadableClaimError as error:
        tell_unreadable(services, error.row.cluster, [error.row])
        return error.row


def tell_unreadable(services: Services, cluster: str, rows: Sequence[UnreadableClaim]) -> None:
    """Say which claims of a cluster cannot be read, and of the first why; nothing where there is none."""
    _tell(services, "claims not readable", rows, cluster=cluster, claims=[row.claim_id for row in rows[:_NAMED]])


def tell_unreadable_credentials(services: Services, rows: Sequence[UnreadableCredential]) -> None:
    """Say which lent credentials cannot be read, and of the first why; nothing where there is none."""
    _tell(services, "credentials not readable", rows, credentials=[row.key for row in rows[:_NAMED]])


def tell_unreadable_blocks(services: Services, provider: str, rows: Sequence[UnreadableBlock]) -> None:
    """Say which blocks of a provider are passed over, and of the first why; nothing where there is none."""
    _tell(services, "blocks not readable", rows, provider=provider, blocks=[row.block_key for row in rows[:_NAMED]])


def _tell(services: Services, message: str, rows: Sequence[Unreadable], **about: object) -> None:
    if rows:
        services.telemetry.error(message, **about, of=len(rows), fields=rows[0].problem)
        services.telemetry.count("Defects", len(rows))
