"""What a provider's error does to a claim.

The block or pause is written before the claim moves, so that whoever sees the claim Pending also
sees what to avoid.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from nebula.domain.claim import AttemptOutcome, Claim, Phase
from nebula.domain.nodepool import NodePool
from nebula.events.details import DetailType
from nebula.lifecycle.transitions import (
    MAX_CHAINED_REJECTIONS,
    MAX_UNKNOWN_OUTCOMES,
    OUTCOME_UNKNOWN,
    back_to_pending,
    move,
    outcome_unknown,
    throttled,
)
from nebula.placement.blocklist import RATE_LIMITED, block_for, matches
from nebula.providers.errors import (
    BlockScope,
    ImagePullError,
    InvalidWorkloadError,
    ProviderError,
    ProviderUnavailableError,
    ProviderUnconfiguredError,
    RateLimitedError,
)
from nebula.stores.blocks import Block
from nebula.workflows.announce import publish_claim
from nebula.workflows.image_wait import image_pause
from nebula.workflows.pod_report import show_waiting
from nebula.workflows.services import Services

#: How long a claim rests when its event chain is over or its event was lost.
REDRIVE_AFTER = timedelta(seconds=30)


def reject(
    services: Services, claim: Claim, error: ProviderError, pool: NodePool | None = None, *, pull_secrets: str = ""
) -> Claim:
    """Apply a provider's refusal of a Provisioning claim; returns the claim as written.

    ``pull_secrets`` is the version of the Secrets with which an image was refused (``image_wait``).
    Raises ``ConflictError`` when somebody else moved the claim meanwhile (its Pod was deleted, say).
    """
    now = services.clock.now()
    message = f"{type(error).__name__.removesuffix('Error')} from {_provider(claim)}: {error}"
    if isinstance(error, ProviderUnavailableError):
        return services.claims.save(claim, outcome_unknown(claim, now, message=message))
    block = _write_block(services, claim, error, pool)
    if isinstance(error, RateLimitedError):
        until = block.expires_at if block is not None else now + REDRIVE_AFTER
        return services.claims.save(claim, throttled(claim, now, until=until, message=message))
    if isinstance(error, ImagePullError | InvalidWorkloadError):
        return services.claims.save(claim, _pod_refused(claim, error, message, now, pull_secrets))
    return _next_candidate(services, claim, error, message)


def _pod_refused(claim: Claim, error: ProviderError, message: str, now: datetime, pull_secrets: str) -> Claim:
    """The Pod must change. A refused image is tried again all the same: its registry may only have been down."""
    again = now + image_pause(claim) if isinstance(error, ImagePullError) else None
    if again is not None:
        message = f"{message}; next try at {again:%Y-%m-%dT%H:%MZ}, or when the Pod or its pull Secret changes"
    moved = back_to_pending(
        claim,
        now,
        reason=type(error).__name__.removesuffix("Error"),
        message=message,
        next_action_at=again,
        outcome=AttemptOutcome.REFUSED,
        failures=error.failures,
    )
    return moved.model_copy(update={"pull_secrets_version": pull_secrets, "refused_pulls": ()})


def standing_blocks(services: Services, claim: Claim) -> list[Block]:
    """What stands in the way of a Placed claim's candidate now: others may have been refused since it was placed."""
    if claim.candidate is None:
        return []
    blocks = services.blocks.active(claim.candidate.provider, services.clock.now())
    return [block for block in blocks if matches(block, claim.candidate)]


def pause_of(blocks: Sequence[Block]) -> datetime | None:
    """When the pause of a provider ends, None when it is not throttled: one Pod's 429 holds for all."""
    return max((block.expires_at for block in blocks if block.kind == RATE_LIMITED), default=None)


def pass_over(services: Services, claim: Claim, blocks: Sequence[Block]) -> Claim:
    """Place a claim anew whose candidate ``blocks`` take: nothing was asked for it. Its Pod is told.

    Raises ``ConflictError`` when somebody else moved the claim meanwhile.
    """
    now = services.clock.now()
    word = max(blocks, key=lambda block: block.expires_at).reason
    moved = back_to_pending(
        claim,
        now,
        reason=word,
        message=f"{word} from {_provider(claim)}, which has refused this to another Pod meanwhile",
        next_action_at=_rest(claim, now),
        rejected=True,
    )
    written = services.claims.save(claim, moved)
    show_waiting(services, written)
    return announce_rejection(services, written)


def wait_out(services: Services, claim: Claim, until: datetime) -> Claim:
    """Keep a Placed claim until its provider's pause is over: nothing was asked for it, and its Pod is told why.

    Raises ``ConflictError`` when somebody else moved the claim meanwhile.
    """
    message = f"{_provider(claim)} throttles this account: no create for any Pod before {until:%Y-%m-%dT%H:%MZ}"
    moved = move(claim, claim.phase, services.clock.now(), next_action_at=until, reason="RateLimited", message=message)
    written = services.claims.save(claim, moved)
    show_waiting(services, written)
    return written


def give_up_unknown(services: Services, claim: Claim) -> Claim:
    """After too many unknown outcomes, and once nothing was made: another candidate for this claim."""
    now = services.clock.now()
    message = f"{_provider(claim)} did not answer {MAX_UNKNOWN_OUTCOMES} times; nothing was created"
    if claim.reason == OUTCOME_UNKNOWN:
        message = f"{message}; last: {claim.message}"
    moved = back_to_pending(
        claim,
        now,
        reason="ProviderUnavailable",
        message=message,
        next_action_at=_rest(claim, now),
        outcome=AttemptOutcome.NEVER_MADE,
        exclude=True,
        rejected=True,
    )
    return announce_rejection(services, services.claims.save(claim, moved))


def not_sent(services: Services, claim: Claim, error: ProviderError) -> Claim:
    """The provider went silent before the create was sent: nothing exists, the same candidate again.

    After ``MAX_UNKNOWN_OUTCOMES`` silences the candidate is given up.
    """
    now = services.clock.now()
    if claim.unknown_outcomes + 1 >= MAX_UNKNOWN_OUTCOMES:
        return give_up_unknown(services, claim)
    message = f"{_provider(claim)} did not answer before anything was asked for: {error}"
    moved = throttled(claim, now, until=now + REDRIVE_AFTER, message=message)
    return services.claims.save(
        claim,
        moved.model_copy(update={"reason": "ProviderUnavailable", "unknown_outcomes": claim.unknown_outcomes + 1}),
    )


def announce_rejection(services: Services, claim: Claim) -> Claim:
    """Wake placement at once, unless this chain of events is long enough (then ``due`` goes on)."""
    if claim.phase is Phase.PENDING and claim.rejections < MAX_CHAINED_REJECTIONS:
        publish_claim(services, DetailType.PROVISION_REJECTED, claim)
    return claim


def _next_candidate(services: Services, claim: Claim, error: ProviderError, message: str) -> Claim:
    now = services.clock.now()
    moved = back_to_pending(
        claim,
        now,
        reason=type(error).__name__.removesuffix("Error"),
        message=message,
        next_action_at=_rest(claim, now),
        outcome=AttemptOutcome.REFUSED,
        failures=error.failures,
        exclude=error.blocks is BlockScope.CLAIM or isinstance(error, ProviderUnconfiguredError),
        rejected=True,
    )
    written = services.claims.save(claim, moved)
    services.telemetry.count("ProvisionRejections", provider=_provider(claim), reason=written.reason)
    return announce_rejection(services, written)


def _rest(claim: Claim, now: datetime) -> datetime:
    return now + REDRIVE_AFTER if claim.rejections + 1 < MAX_CHAINED_REJECTIONS else now


def _write_block(services: Services, claim: Claim, error: ProviderError, pool: NodePool | None) -> Block | None:
    """Write what the error says about other Pods; returns what stands, None when it says nothing."""
    if claim.candidate is None:
        return None
    block = block_for(error, claim.candidate, pool, services.clock.now())
    if block is not None:
        block = services.blocks.put(block)
        services.telemetry.warning(
            "blocked", provider=block.provider, block=block.key, reason=block.reason, until=block.expires_at.isoformat()
        )
    return block


def _provider(claim: Claim) -> str:
    return claim.candidate.provider if claim.candidate is not None else "?"
