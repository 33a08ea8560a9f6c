"""A registry credential lent to a provider: the ledger row that remembers it."""

from collections.abc import Mapping
from enum import StrEnum

from pydantic import AwareDatetime, Field

from nebula.domain.base import StoredModel


class CredentialState(StrEnum):
    """Design §9: ``Active → Superseded → Retiring → Retired``."""

    ACTIVE = "Active"
    SUPERSEDED = "Superseded"
    RETIRING = "Retiring"
    RETIRED = "Retired"


class CredentialKey(StoredModel):
    """Ledger key. ``fingerprint`` is an HMAC, so it reveals neither user nor password."""

    provider: str
    account: str
    fingerprint: str
    generation: int = Field(ge=1)

    def __str__(self) -> str:
        """Render as ``provider/account/fingerprint/generation``, the form a claim carries."""
        return f"{self.line}/{self.generation}"

    @classmethod
    def parse(cls, text: str) -> "CredentialKey":
        """Read the form that ``str()`` writes; ValueError when it is anything else."""
        provider, account, fingerprint, generation = text.split("/")
        return cls(provider=provider, account=account, fingerprint=fingerprint, generation=int(generation))

    @property
    def line(self) -> str:
        """``provider/account/fingerprint``: what all generations of one password share."""
        return f"{self.provider}/{self.account}/{self.fingerprint}"

    @property
    def object_name(self) -> str:
        """The name the credential carries at the provider: ``nebula-<fingerprint>-<generation>``."""
        return f"nebula-{self.fingerprint}-{self.generation}"


class Credential(StoredModel):
    """One row of the credentials ledger; holds no secret.

    ``provider_id`` is the provider's id once created. ``sources`` are ``cluster/namespace/Secret``.
    ``username_hint`` is the user masked for display. ``version`` guards every write. ``superseded_at``
    is when no source yielded the password any more; a ``Superseded`` row without it was only refused as
    in use by the provider. ``aged_out`` closes a row past its maximum age to new Pods. ``retiring_at`` is
    when a retirement took the row, ``unseen_since`` when one first missed the object without proof that
    it is gone, ``note`` why it was put off last, or at last why it went. ``lent_to`` is the account in
    which the object was last seen (``workflows.accounts``), ``clusters`` the UIDs of the sources' clusters by name,
    ``keyed_by`` which fingerprint key it was named with ("": by a release that did not note it). ``forget_at`` is since
    when the ledger may lose a retired row.
    """

    key: CredentialKey
    version: int = 1
    state: CredentialState = CredentialState.ACTIVE
    provider_id: str | None = None
    registry: str
    username_hint: str = ""
    lent_to: str = ""
    keyed_by: str = ""
    sources: tuple[str, ...] = ()
    clusters: Mapping[str, str] = Field(default_factory=dict)
    created_at: AwareDatetime
    last_used_at: AwareDatetime
    superseded_at: AwareDatetime | None = None
    retiring_at: AwareDatetime | None = None
    unseen_since: AwareDatetime | None = None
    retired_at: AwareDatetime | None = None
    expires_at: AwareDatetime | None = None
    aged_out: bool = False
    note: str = ""
    revocation_announced_at: AwareDatetime | None = None
    revocation_acknowledged_at: AwareDatetime | None = None
    forget_at: AwareDatetime | None = None
