"""The blocks ledger: what not to try for a while, shared by all Pods (docs/placement.md)."""

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Protocol

from pydantic import AwareDatetime, ValidationError

from nebula.domain.base import StoredModel
from nebula.domain.unreadable import UnreadableBlock, misfits

#: DynamoDB takes range keys of up to 1,024 bytes.
MAX_KEY_BYTES = 1024
#: What a block is called whose row does not say it in words that can be read.
UNREADABLE = "Unreadable"


class Block(StoredModel):
    """One block. ``*`` in a part means any.

    ``shape`` is ``str(Shape)``, or an accelerator type followed by ``:*`` for a block of every
    shape of that accelerator. ``kind`` is ``blocked`` or ``rate_limited``. ``reason`` is the provider's own word.
    """

    provider: str
    shape: str = "*"
    capacity_type: str = "*"
    region: str = "*"
    kind: str = "blocked"
    reason: str
    code: str = ""
    created_at: AwareDatetime
    expires_at: AwareDatetime

    @property
    def key(self) -> str:
        """``kind/shape/tier/region``; unique within the provider. A digest where that is too long for a key.

        A NodePool may list any number of regions and parameters.
        """
        text = f"{self.kind}/{self.shape}/{self.capacity_type}/{self.region}"
        if len(text.encode()) <= MAX_KEY_BYTES:
            return text
        return f"{self.kind}/sha256/{hashlib.sha256(text.encode()).hexdigest()}"


def block_at(values: Mapping[str, Any], now: datetime) -> Block | UnreadableBlock | None:
    """The block that stands at ``now`` by the plain values of its row, None where it is over.

    Of a row that only a newer release can read stands what can be told of it: what it blocks, until its
    ``expires_at``, or its ``expires_at_epoch``. Where these do not fit either, nothing stands: a block that is lost
    costs a refused request, one that stops every placement costs everybody.
    """
    try:
        block = Block.model_validate(values)
    except ValidationError as error:
        return _told(values, misfits(error), now)
    return block if block.expires_at > now else None


def _told(values: Mapping[str, Any], problems: tuple[str, ...], now: datetime) -> Block | UnreadableBlock | None:
    reason, until = values.get("reason"), values.get("expires_at_epoch" if "expires_at" in problems else "expires_at")
    scope = {name: values.get(name) for name in ("provider", "shape", "capacity_type", "region", "kind")}
    lost = UnreadableBlock(
        provider=str(scope["provider"]), block_key=str(values.get("block_key", "")), problem=", ".join(problems)
    )
    try:
        whole = Block.model_validate(
            {
                "provider": "",
                "reason": reason if isinstance(reason, str) else UNREADABLE,
                "created_at": now,
                "expires_at": until,
            }
        )
    except ValidationError:
        return lost
    if whole.expires_at <= now:
        return None
    return whole.model_copy(update=scope) if all(isinstance(part, str) for part in scope.values()) else lost


def standing(rows: Iterable[Block | UnreadableBlock | None], unreadable: list[UnreadableBlock] | None) -> list[Block]:
    """The blocks among what ``block_at`` said of rows; the rows that block nothing are added to ``unreadable``."""
    blocks = []
    for row in rows:
        if isinstance(row, Block):
            blocks.append(row)
        elif row is not None and unreadable is not None:
            unreadable.append(row)
    return blocks


class BlockStore(Protocol):
    """Blocks by provider. Expiry is compared here with the clock given; TTL deletes lag."""

    def put(self, block: Block) -> Block:
        """Write a block; an existing one is extended, never shortened. Returns what stands."""
        ...

    def active(self, provider: str, now: datetime, unreadable: list[UnreadableBlock] | None = None) -> list[Block]:
        """Blocks of a provider that have not expired at ``now``; a strong read.

        See ``block_at`` for a row that a newer release wrote; those that block nothing are added to ``unreadable``.
        """
        ...

    def clear(self, provider: str) -> int:
        """Remove a provider's blocks (a new key appeared); returns how many."""
        ...
