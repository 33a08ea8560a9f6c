"""Blocks: what a refusal takes out of placement, for whom and for how long (docs/placement.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from nebula.domain.candidate import Candidate
from nebula.domain.nodepool import Failover, NodePool
from nebula.placement.verdict import Reason, Refusal
from nebula.providers.errors import (
    AuthenticationError,
    BlockScope,
    InsufficientBalanceError,
    NoCapacityError,
    ProviderError,
    QuotaExceededError,
    RateLimitedError,
    UnsupportedAcceleratorError,
)
from nebula.stores.blocks import Block

ANY = "*"
BLOCKED = "blocked"
RATE_LIMITED = "rate_limited"
CPU_ONLY = "cpu-only"

PROVIDER_BLOCK = timedelta(minutes=15)
"""How long a refused key or an empty account takes a provider out. Only a person can mend it, so each new
failure extends the block; a new key clears it."""

LEAST_BLOCK = timedelta(seconds=1)
"""Least time for any block. A refusal that is forgotten at once would be asked for again in the same second, by every
Pod and for as long as it stands."""

LONGEST_BLOCK = timedelta(hours=1)
"""Most time for any block. It holds for the Pods of every NodePool, so that one pool's long memory must not take a
machine from all the others for days."""

UNSUPPORTED_BLOCK = timedelta(minutes=10)
"""Least time for "not offered" and "not for this account": such answers change in hours, not seconds."""

LONGEST_PAUSE = timedelta(minutes=15)
"""Most that a provider's ``Retry-After`` is believed."""

WORDS: dict[type[ProviderError], str] = {
    NoCapacityError: "NoCapacity",
    QuotaExceededError: "QuotaExceeded",
    UnsupportedAcceleratorError: "UnsupportedAccelerator",
    AuthenticationError: "AuthenticationFailed",
    InsufficientBalanceError: "InsufficientBalance",
    RateLimitedError: "RateLimited",
}


def block_for(error: ProviderError, candidate: Candidate, pool: NodePool | None, now: datetime) -> Block | None:
    """The shared block that an error justifies, None when it says nothing about other Pods.

    Capacity and quota block exactly the shape, tier and place that were refused; an unsupported
    accelerator blocks every count of it at that place; a refused key or an empty account blocks the
    provider; a throttle pauses it until ``Retry-After``. Without a pool (it was deleted meanwhile)
    the default ``blocklistTTL`` holds.
    """
    asked = (pool.failover if pool is not None else Failover()).blocklist_ttl
    ttl = min(max(asked, LEAST_BLOCK), LONGEST_BLOCK)
    word = _word(error)
    base = Block(provider=candidate.provider, reason=word, code=error.code, created_at=now, expires_at=now + ttl)
    if isinstance(error, RateLimitedError):
        pause = min(max(error.retry_after, timedelta(seconds=1)), LONGEST_PAUSE)
        return base.model_copy(update={"kind": RATE_LIMITED, "expires_at": now + pause})
    if error.blocks is BlockScope.PROVIDER:
        return base.model_copy(update={"expires_at": now + max(ttl, PROVIDER_BLOCK)})
    if error.blocks is BlockScope.ACCELERATOR:
        accelerator = candidate.shape.accelerator or CPU_ONLY
        return base.model_copy(
            update={
                "shape": f"{accelerator}:*",
                "region": candidate.place,
                "expires_at": now + max(ttl, UNSUPPORTED_BLOCK),
            }
        )
    if error.blocks is BlockScope.CANDIDATE:
        return base.model_copy(
            update={
                "shape": str(candidate.shape),
                "capacity_type": str(candidate.capacity_type),
                "region": candidate.place,
            }
        )
    return None


def matches(block: Block, candidate: Candidate) -> bool:
    """Whether a block stands in a candidate's way; expiry is the caller's (``BlockStore.active``)."""
    return (
        block.provider == candidate.provider
        and matches_shape(block, candidate.shape.accelerator, str(candidate.shape))
        and block.capacity_type in {ANY, candidate.capacity_type}
        and block.region in {ANY, candidate.place}
    )


def matches_shape(block: Block, accelerator: str | None, shape_name: str) -> bool:
    """Whether a block covers a shape: any, every count of its accelerator, or exactly this one."""
    return block.shape in (ANY, shape_name) or block.shape == f"{accelerator or CPU_ONLY}:*"


def refusal_of(blocks: Iterable[Block], now: datetime) -> Refusal | None:
    """What matching blocks mean together: it frees when the last of them expires.

    A true block is named before a mere pause. Expired ones are passed over: TTL deletes lag.
    """
    named: Block | None = None
    frees_at = now
    for block in blocks:
        if block.expires_at <= now:
            continue
        frees_at = max(frees_at, block.expires_at)
        if named is None or (block.kind == BLOCKED, block.expires_at) > (named.kind == BLOCKED, named.expires_at):
            named = block
    if named is None:
        return None
    reason = Reason.BLOCKED if named.kind == BLOCKED else Reason.RATE_LIMITED
    return Refusal(reason, f"{named.reason} ({named.code})" if named.code else named.reason, frees_at)


class Fence:
    """The blocks of one provider that cover one shape in one tier: those of a place, and those of every place."""

    __slots__ = ("_everywhere", "_places")

    def __init__(self, blocks: Sequence[Block], tier: str) -> None:
        self._everywhere: list[Block] = []
        self._places: dict[str, list[Block]] = {}
        for block in blocks:
            if block.capacity_type not in (tier, ANY):
                continue
            if block.region == ANY:
                self._everywhere.append(block)
            else:
                self._places.setdefault(block.region, []).append(block)

    def refusal(self, place: str, now: datetime) -> Refusal | None:
        """What stands in the way of a candidate, None when nothing does."""
        here = self._places.get(place)
        if self._everywhere:
            return refusal_of([*(here or ()), *self._everywhere], now)
        return None if here is None else refusal_of(here, now)


def _word(error: ProviderError) -> str:
    for kind in type(error).__mro__:
        if kind in WORDS:
            return WORDS[kind]
    return type(error).__name__.removesuffix("Error")
