"""What a provider's list of registry credentials says of the ledger's rows. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nebula.domain.credential import Credential, CredentialState
from nebula.domain.unreadable import UnreadableCredential
from nebula.providers.base import RegistryObject

#: What every name that we give begins with (``CredentialKey.object_name``).
NAME_PREFIX = "nebula-"


class Listing:
    """One listing of one provider's account, beside the provider's rows.

    ``account`` is the account as keys of the ledger name it, ``lender`` as rows note it in ``lent_to``.
    """

    def __init__(
        self,
        objects: Iterable[RegistryObject],
        rows: Sequence[Credential],
        *,
        account: str,
        lender: str,
        unreadable: Sequence[UnreadableCredential] = (),
    ) -> None:
        self.account = account
        self.lender = lender
        self._rows = {row.key.object_name: row for row in rows if row.key.account == account}
        self._recorded = self._rows.keys() | {row.object_name for row in unreadable}
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
        return tuple(sorted(n for n in self._objects if n.startswith(NAME_PREFIX) and n not in self._recorded))

    def resurrected(self) -> tuple[Credential, ...]:
        """Retired rows whose object is here again: a create that was on its way while the row was retired."""
        return tuple(
            row for row in self._rows.values() if row.state is CredentialState.RETIRED and self.has(row)
        )  # fmt: skip

    def proves_absence(self, row: Credential) -> bool:
        """Whether a row's object that is not listed is really gone.

        A changed key may show another account, where nothing of ours is listed either. So absence counts
        for what was lent with this key, and where something is seen that was lent with the same former one.
        """
        if self.has(row):
            return False
        if row.lent_to in ("", self.lender):
            return True
        return any(
            other.lent_to == row.lent_to and other.provider_id in self.ids(other) for other in self._rows.values()
        )
