"""The credentials ledger (docs/credentials.md); holds no secret."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from nebula.domain.credential import Credential, CredentialKey
from nebula.domain.unreadable import UnreadableCredential


class CredentialConflictError(Exception):
    """Somebody else moved the row first; ``current`` is what stands there now, None for one that cannot be read."""

    def __init__(self, message: str, current: Credential | None = None) -> None:
        super().__init__(message)
        self.current = current


class CredentialStore(Protocol):
    """Rows by (provider, account, fingerprint) and generation. Reads are strong.

    A row that a newer release wrote may be unreadable here. It is not replaced; lists go on without it and tell of it.
    """

    def get(self, key: CredentialKey) -> Credential | None:
        """The row, or None. Raises UnreadableCredentialError for one that cannot be read."""
        ...

    def latest(self, provider: str, account: str, fingerprint: str) -> Credential | UnreadableCredential | None:
        """The row of the highest generation, whether or not it can be read; or None."""
        ...

    def create(self, credential: Credential) -> Credential:
        """Write a new row; CredentialConflictError when one stands there."""
        ...

    def save(self, previous: Credential, credential: Credential) -> Credential:
        """Replace on condition that version, state and ``last_used_at`` still stand (version + 1)."""
        ...

    def all(
        self, *, include_retired: bool = False, unreadable: list[UnreadableCredential] | None = None
    ) -> Iterator[Credential]:
        """Every row, page by page; Retired ones only on request.

        Rows that cannot be read are added to ``unreadable``, the last of them when the last row was taken; without it
        the first raises ``UnreadableCredentialError``.
        """
        ...
