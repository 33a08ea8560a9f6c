"""The blocks ledger: what not to try for a while, shared by all Pods (docs/placement.md)."""

import hashlib
from datetime import datetime
from typing import Protocol

from pydantic import AwareDatetime

from nebula.domain.base import StoredModel

#: DynamoDB takes range keys of up to 1,024 bytes.
MAX_KEY_BYTES = 1024


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


class BlockStore(Protocol):
    """Blocks by provider. Expiry is compared here with the clock given; TTL deletes lag."""

    def put(self, block: Block) -> Block:
        """Write a block; an existing one is extended, never shortened. Returns what stands."""
        ...

    def active(self, provider: str, now: datetime) -> list[Block]:
        """Blocks of a provider that have not expired at ``now``; a strong read."""
        ...

    def clear(self, provider: str) -> int:
        """Remove a provider's blocks (a new key appeared); returns how many."""
        ...
