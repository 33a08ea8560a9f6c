"""The two bases of every model: strict for what we write, tolerant for what we read back."""

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
