"""The claims ledger (docs/data-model.md)."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Protocol

from pydantic import AwareDatetime, Field

from nebula.domain.base import StoredModel
from nebula.domain.claim import Claim, Phase
from nebula.domain.unreadable import UnreadableClaim


class ConflictError(Exception):
    """Somebody else moved the row first; ``current`` is what stands there now (None: no row)."""

    def __init__(self, message: str, current: Claim | None = None) -> None:
        super().__init__(message)
        self.current = current


class BudgetExhaustedError(Exception):
    """The NodePool's ``budgetPerHour`` does not leave room for what the claim would reserve."""


class LedgerBusyError(Exception):
    """Other writers held the same rows through every try of this one: nothing was written, try later."""


class Budget(StoredModel):
    """The counter row of one NodePool: USD per hour committed, guarded by ``version``."""

    cluster: str
    node_pool: str
    committed_per_hour: Decimal = Decimal(0)
    version: int = 0


class DueClaim(StoredModel):
    """What the ``due`` index tells: enough to announce, never enough to act.

    ``phase`` is a plain text where only a newer release knows it.
    """

    claim_id: str
    phase: Phase | str = Field(union_mode="left_to_right")
    version: int
    next_action_at: AwareDatetime
    cluster: str
    provider: str = ""
    reason: str = ""


class ClaimStore(Protocol):
    """Claims and budget counters. Every read is strong unless said otherwise.

    ``create`` and ``save`` adjust the NodePool's counter by the change of
    ``claim.committed_per_hour`` in the same transaction; when it grows and ``budget_limit`` (USD/h) is
    given, the write succeeds only within it.

    A row that a newer release wrote may be unreadable here. Whoever asks for it, or would replace it, gets
    ``UnreadableClaimError``; lists go on without it and tell of it.
    """

    def get(self, claim_id: str) -> Claim | None:
        """The claim, or None."""
        ...

    def create(self, claim: Claim, *, budget_limit: Decimal | None = None) -> Claim:
        """Write a new claim. ConflictError when one exists, BudgetExhaustedError over the limit."""
        ...

    def save(self, previous: Claim, claim: Claim, *, budget_limit: Decimal | None = None) -> Claim:
        """Replace ``previous`` on condition that its phase and version still stand.

        Returns the claim as written (version + 1). ConflictError (with ``current``) otherwise.
        """
        ...

    def touch(self, due: DueClaim, next_action_at: datetime) -> bool:
        """Move a due claim's ``next_action_at`` if it still stands as read; False when it moved.

        Does not change the claim's version: an announcement is not a move.
        """
        ...

    def live(self, cluster: str, unreadable: list[UnreadableClaim] | None = None) -> Iterator[Claim]:
        """Live claims of a cluster by the ``live`` index (eventually consistent).

        Rows that cannot be read are added to ``unreadable``; without it the first raises ``UnreadableClaimError``.
        """
        ...

    def any_live(self, cluster: str) -> bool:
        """Whether the cluster has a live claim (eventually consistent)."""
        ...

    def due(self, now: datetime, limit: int = 200) -> list[DueClaim]:
        """The oldest claims whose ``next_action_at`` has come, oldest first."""
        ...

    def find_by_instance(self, instance_id: str) -> Claim | None:
        """The claim whose latest attempt holds the instance id, or None."""
        ...

    def find_by_credential(self, credential_key: str) -> Sequence[Claim | UnreadableClaim]:
        """Live claims that carry the credential key, whether or not they can be read."""
        ...

    def budget(self, cluster: str, node_pool: str) -> Budget:
        """The counter of a NodePool; zero when none was written."""
        ...

    def correct_budget(self, read: Budget, committed_per_hour: Decimal) -> bool:
        """Set the counter if its version is still the one read; False when it moved."""
        ...
