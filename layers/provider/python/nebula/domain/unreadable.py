"""A row of the claims ledger that this release cannot read, because a newer one wrote it."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from nebula.domain.base import StoredModel


class UnreadableClaim(StoredModel):
    """What can be told of such a row. Its claim lives, and nothing more is known: nothing is reclaimed on its account.

    ``committed_per_hour`` (USD/h) is what its writer counted into the NodePool's counter, None where even that cannot
    be read; texts that cannot be read are "". ``problem`` names the fields that do not fit, never a value.
    """

    claim_id: str
    cluster: str = ""
    node_pool: str = ""
    provider: str = ""
    committed_per_hour: Decimal | None = None
    problem: str = ""

    @classmethod
    def told_by(cls, values: Mapping[str, Any], problems: Iterable[str]) -> "UnreadableClaim":
        """The row from its plain values and the names of what does not fit."""
        texts = {name: _text(values.get(name)) for name in ("claim_id", "cluster", "node_pool", "provider")}
        committed = values.get("committed_per_hour")
        counted = isinstance(committed, Decimal) and committed.is_finite() and committed >= 0
        return cls(
            **texts, committed_per_hour=committed if counted else None, problem=", ".join(sorted(set(problems)))
        )  # fmt: skip


class UnreadableClaimError(Exception):
    """A claim was asked for that only a newer release can read; ``row`` is what can be told of it."""

    def __init__(self, row: UnreadableClaim) -> None:
        super().__init__(f"claim {row.claim_id} was written by a newer release: cannot read {row.problem}")
        self.row = row


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
