"""The blocks ledger in memory. Thread-safe."""

from __future__ import annotations

from datetime import datetime
from threading import Lock

from nebula.stores.blocks import Block


class MemoryBlockStore:
    """See ``BlockStore``. ``writes`` counts rows written or deleted."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._blocks: dict[str, dict[str, Block]] = {}
        self.writes = 0

    def put(self, block: Block) -> Block:
        """See ``BlockStore.put``."""
        with self._lock:
            rows = self._blocks.setdefault(block.provider, {})
            standing = rows.get(block.key)
            if standing is not None and standing.expires_at >= block.expires_at:
                return standing
            rows[block.key] = block
            self.writes += 1
            return block

    def active(self, provider: str, now: datetime) -> list[Block]:
        """See ``BlockStore.active``; sorted by key, as the table returns them."""
        with self._lock:
            rows = sorted(self._blocks.get(provider, {}).items())
            return [block for _, block in rows if block.expires_at > now]

    def clear(self, provider: str) -> int:
        """See ``BlockStore.clear``."""
        with self._lock:
            removed = len(self._blocks.pop(provider, {}))
            self.writes += removed
            return removed
