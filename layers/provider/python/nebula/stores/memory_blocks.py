"""The blocks ledger in memory. Thread-safe."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from threading import Lock
from typing import Any

from nebula.domain.unreadable import UnreadableBlock
from nebula.stores.blocks import Block, block_at, standing


class MemoryBlockStore:
    """See ``BlockStore``. ``writes`` counts rows written or deleted."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._blocks: dict[str, dict[str, Block]] = {}
        self._newer: dict[tuple[str, str], Mapping[str, Any]] = {}
        self.writes = 0

    def put(self, block: Block) -> Block:
        """See ``BlockStore.put``."""
        with self._lock:
            rows = self._blocks.setdefault(block.provider, {})
            before = rows.get(block.key)
            if before is not None and before.expires_at >= block.expires_at:
                stands = self._at(before, block.created_at)
                return stands if isinstance(stands, Block) else block
            rows[block.key] = block
            self._newer.pop((block.provider, block.key), None)
            self.writes += 1
            return block

    def active(self, provider: str, now: datetime, unreadable: list[UnreadableBlock] | None = None) -> list[Block]:
        """See ``BlockStore.active``; sorted by key, as the table returns them."""
        with self._lock:
            rows = sorted(self._blocks.get(provider, {}).items())
            return standing([self._at(block, now) for _, block in rows], unreadable)

    def clear(self, provider: str) -> int:
        """See ``BlockStore.clear``."""
        with self._lock:
            removed = self._blocks.pop(provider, {})
            for key in removed:
                self._newer.pop((provider, key), None)
            self.writes += len(removed)
            return len(removed)

    def make_newer(self, block: Block, **changes: Any) -> None:
        """Give attributes of a row values that a newer release would write; for tests only."""
        with self._lock:
            self._newer[block.provider, block.key] = changes

    def _at(self, block: Block, now: datetime) -> Block | UnreadableBlock | None:
        changes = self._newer.get((block.provider, block.key))
        if changes is None:
            return block if block.expires_at > now else None
        derived = {"block_key": block.key, "expires_at_epoch": math.ceil(block.expires_at.timestamp())}
        return block_at({**block.model_dump(), **derived, **changes}, now)
