"""The credentials ledger in memory. Thread-safe."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock

from nebula.domain.credential import Credential, CredentialKey, CredentialState
from nebula.domain.unreadable import UnreadableCredential, UnreadableCredentialError
from nebula.stores.credentials import CredentialConflictError


class MemoryCredentialStore:
    """See ``CredentialStore``. ``writes`` counts rows written."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._rows: dict[str, Credential] = {}
        self._newer: dict[str, UnreadableCredential] = {}
        self.writes = 0

    def get(self, key: CredentialKey) -> Credential | None:
        """See ``CredentialStore.get``."""
        with self._lock:
            if str(key) in self._newer:
                raise UnreadableCredentialError(self._newer[str(key)])
            return self._rows.get(str(key))

    def latest(self, provider: str, account: str, fingerprint: str) -> Credential | UnreadableCredential | None:
        """See ``CredentialStore.latest``."""
        line = f"{provider}/{account}/{fingerprint}"
        with self._lock:
            rows: dict[int, Credential | UnreadableCredential] = {
                row.key.generation: row for row in self._rows.values() if row.key.line == line
            }
            rows |= {row.generation: row for row in self._newer.values() if row.line == line}
        return rows[max(rows)] if rows else None

    def create(self, credential: Credential) -> Credential:
        """See ``CredentialStore.create``."""
        with self._lock:
            current = self._standing(credential.key)
            if current is not None or str(credential.key) in self._newer:
                raise CredentialConflictError(f"credential {credential.key} exists", current)
            return self._put(credential)

    def save(self, previous: Credential, credential: Credential) -> Credential:
        """See ``CredentialStore.save``."""
        if previous.key != credential.key:
            raise ValueError(f"credential {credential.key} does not replace {previous.key}")
        with self._lock:
            current = self._standing(credential.key)
            if current is None or _guard(current) != _guard(previous):
                raise CredentialConflictError(f"credential {credential.key} moved", current)
            return self._put(credential.model_copy(update={"version": previous.version + 1}))

    def all(
        self, *, include_retired: bool = False, unreadable: list[UnreadableCredential] | None = None
    ) -> Iterator[Credential]:
        """See ``CredentialStore.all``; a snapshot."""
        with self._lock:
            rows = [row for key, row in self._rows.items() if key not in self._newer]
            newer = list(self._newer.values())
        if unreadable is None and newer:
            raise UnreadableCredentialError(newer[0])
        if unreadable is not None:
            unreadable.extend(newer)
        return iter([row for row in rows if include_retired or row.state is not CredentialState.RETIRED])

    def hold(self, row: UnreadableCredential) -> None:
        """Keep a row that cannot be read, in place of what stands under its key: a copy's, or a test's."""
        with self._lock:
            self._newer[row.key] = row

    def _standing(self, key: CredentialKey) -> Credential | None:
        return None if str(key) in self._newer else self._rows.get(str(key))

    def _put(self, credential: Credential) -> Credential:
        self._rows[str(credential.key)] = credential
        self.writes += 1
        return credential


def _guard(credential: Credential) -> tuple[object, ...]:
    return credential.version, credential.state, credential.last_used_at
