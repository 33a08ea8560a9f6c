"""The credentials ledger in memory. Thread-safe."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock

from nebula.domain.credential import Credential, CredentialKey, CredentialState
from nebula.stores.credentials import CredentialConflictError


class MemoryCredentialStore:
    """See ``CredentialStore``. ``writes`` counts rows written."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._rows: dict[str, Credential] = {}
        self.writes = 0

    def get(self, key: CredentialKey) -> Credential | None:
        """See ``CredentialStore.get``."""
        with self._lock:
            return self._rows.get(str(key))

    def latest(self, provider: str, account: str, fingerprint: str) -> Credential | None:
        """See ``CredentialStore.latest``."""
        wanted = (provider, account, fingerprint)
        with self._lock:
            rows = [c for c in self._rows.values() if (c.key.provider, c.key.account, c.key.fingerprint) == wanted]
        return max(rows, key=lambda row: row.key.generation, default=None)

    def create(self, credential: Credential) -> Credential:
        """See ``CredentialStore.create``."""
        with self._lock:
            current = self._rows.get(str(credential.key))
            if current is not None:
                raise CredentialConflictError(f"credential {credential.key} exists", current)
            return self._put(credential)

    def save(self, previous: Credential, credential: Credential) -> Credential:
        """See ``CredentialStore.save``."""
        if previous.key != credential.key:
            raise ValueError(f"credential {credential.key} does not replace {previous.key}")
        with self._lock:
            current = self._rows.get(str(credential.key))
            if current is None or _guard(current) != _guard(previous):
                raise CredentialConflictError(f"credential {credential.key} moved", current)
            return self._put(credential.model_copy(update={"version": previous.version + 1}))

    def all(self, *, include_retired: bool = False) -> Iterator[Credential]:
        """See ``CredentialStore.all``; a snapshot."""
        with self._lock:
            rows = list(self._rows.values())
        return iter([row for row in rows if include_retired or row.state is not CredentialState.RETIRED])

    def _put(self, credential: Credential) -> Credential:
        self._rows[str(credential.key)] = credential
        self.writes += 1
        return credential


def _guard(credential: Credential) -> tuple[object, ...]:
    return credential.version, credential.state, credential.last_used_at
