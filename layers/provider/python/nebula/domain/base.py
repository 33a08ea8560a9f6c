"""The two bases of every model: strict for what we write, tolerant for what we read back.

Modules that define models do without ``from __future__ import annotations``: it would turn each annotation into text,
which pydantic compiles and evaluates again, one after the other, at every cold start.
"""

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """Immutable value object that refuses unknown fields and never shows its input in errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class StoredModel(BaseModel):
    """Immutable value object read from a ledger or a peer: unknown fields are ignored.

    A newer release may have written fields that this one does not know; refusing them would make a
    rollback lose every row.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)
