"""Rows of the ledgers that this release cannot read, because a newer one wrote them."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from pydantic import ValidationError

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


class UnreadableCredential(StoredModel):
    """A row of a lent credential of which only the key can be told. Its object is in use, for all that is known.

    ``line`` is ``CredentialKey.line``, ``problem`` as of an ``UnreadableClaim``.
    """

    line: str
    generation: int
    problem: str = ""

    @property
    def key(self) -> str:
        """The key in the form that a claim carries."""
        return f"{self.line}/{self.generation}"

    @property
    def provider(self) -> str:
        """The provider that it was lent to."""
        return self.line.partition("/")[0]

    @property
    def object_name(self) -> str:
        """See ``CredentialKey.object_name``."""
        return f"nebula-{self.line.rpartition('/')[2]}-{self.generation}"


class UnreadableCredentialError(Exception):
    """A lent credential was asked for whose row only a newer release can read; ``row`` is what can be told of it."""

    def __init__(self, row: UnreadableCredential) -> None:
        super().__init__(f"credential {row.key} was written by a newer release: cannot read {row.problem}")
        self.row = row


class UnreadableBlock(StoredModel):
    """A row of which not even what it blocks, or until when, can be told. It blocks nothing."""

    provider: str
    block_key: str = ""
    problem: str = ""


def misfits(error: ValidationError) -> tuple[str, ...]:
    """The fields that do not fit, by name and never by value."""
    wrong = error.errors(include_url=False, include_context=False, include_input=False)
    return tuple(sorted({".".join(map(str, one["loc"])) for one in wrong}))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
