"""What a provider's list of registry credentials says of the ledger's rows. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nebula.domain.credential import Credential, CredentialState
from nebula.providers.base import RegistryObject
from nebula.workflows.lend import UNKNOWN_ACCOUNT

#: What every name that we give begins with (``CredentialKey.object_name``).
NAME_PREFIX = "nebula-"


class Listing:
    """One listing of one provider's account, beside the provider's rows."""

    def __init__(self, objects: Iterable[RegistryObject], rows: Sequence[Credential], account: str) -> None:
        self.account = account
        self._rows = {row.key.object_name: row for row in rows if row.key.account == account}
        self._objects: dict[str, list[str]] = {}
        for found in objects:
            self._objects.setdefault(found.name, []).append(found.id)

    def ids(self, row: Credential) -> tuple[str, ...]:
        """Ids of the objects with exactly the row's name; more than one where two creates raced."""
        return tuple(filter(None, self._objects.get(row.key.object_name, ())))

    def has(self, row: Credential) -> bool:
        """Whether an object of the row's name is listed, with or without an id."""
        return row.key.object_name in self._objects

    def unrecorded(self) -> tuple[str, ...]:
        """Names with our prefix that no row knows: listed for a person, never touched."""
        return tuple(sorted(n for n in self._objects if n.startswith(NAME_PREFIX) and n not in self._rows))

    def resurrected(self) -> tuple[Credential, ...]:
        """Retired rows whose object is here again: a create that was on its way while the row was retired."""
        return tuple(
            row for row in self._rows.values() if row.state is CredentialState.RETIRED and self.has(row)
        )  # fmt: skip

    def proves_absence(self, row: Credential) -> bool:
        """Whether a row's object that is not listed is really gone.

        A changed key shows another account, where nothing of ours is listed either. So absence counts
        where the account is known to be the row's, where an earlier listing of this retirement showed the
        object, where none was ever made, or where an object made before the row's last use is still seen.
        """
        if self.has(row):
            return False
        if self.account != UNKNOWN_ACCOUNT or row.listed_at is not None or row.provider_id is None:
            return True
        witnesses = (other for name, other in self._rows.items() if name in self._objects)
        return any(other.created_at <= row.last_used_at for other in witnesses)
