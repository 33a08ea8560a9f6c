"""Giving back what was rented: delete intent in the ledger, then the provider, then proof.

Nothing here calls an instance gone: only a positive answer of the provider, read by the status loop,
does that.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from nebula.domain.claim import Attempt, Claim, Phase, TerminationReason, claim_id_for
from nebula.lifecycle.transitions import move, terminating
from nebula.providers.errors import ProviderError, ProviderUnavailableError
from nebula.stores.claims import ConflictError
from nebula.workflows.accounts import account_of, is_of
from nebula.workflows.pod_checks import Standing, read_pod
from nebula.workflows.services import Services

#: How soon a delete that is not confirmed is looked at again; the status loop usually confirms sooner.
RECLAIM_RETRY = timedelta(seconds=60)
_TRIES = 3


def pod_deleted(services: Services, cluster: str, namespace: str, name: str, uid: str) -> Claim | None:
    """A Pod is said to be deleted: confirm by reading it, then end its claim and give the instance back.

    Returns the claim as written, None when there is none (placement reads the Pod again before it
    makes one). Raises ``ClusterUnavailableError`` when nobody answers: silence is not absence.
    """
    services.telemetry.info("pod deleted", cluster=cluster, pod=f"{namespace}/{name}", uid=uid)
    claim_id = claim_id_for(cluster, uid)
    for _ in range(_TRIES):
        claim = services.claims.get(claim_id)
        if claim is None or not claim.live:
            return claim
        try:
            return _end_if_gone(services, claim)
        except ConflictError:
            continue
    return services.claims.get(claim_id)


def _end_if_gone(services: Services, claim: Claim) -> Claim:
    if claim.phase is Phase.TERMINATING:
        return reclaim(services, claim)
    reading = read_pod(services.clusters.get(claim.cluster), claim)
    if reading.standing is not Standing.GONE:
        services.telemetry.info("the Pod is still there", claim_id=claim.claim_id)
        return claim
    return end_claim(services, claim, TerminationReason.POD_DELETED, reading.detail)


def reclaim_claim(services: Services, claim_id: str) -> Claim | None:
    """Go on with a Withdrawing or Terminating claim that is due; others are left as they are."""
    claim = services.claims.get(claim_id)
    if claim is None or claim.phase not in (Phase.WITHDRAWING, Phase.TERMINATING):
        return claim
    try:
        return reclaim(services, claim)
    except ConflictError:
        services.telemetry.info("claim moved meanwhile", claim_id=claim_id)
        return services.claims.get(claim_id)


def end_claim(services: Services, claim: Claim, why: TerminationReason, message: str) -> Claim:
    """Write the delete intent and ask the provider for the end of whatever was rented.

    Raises ``stores.claims.ConflictError`` when the claim moved meanwhile.
    """
    written = services.claims.save(claim, terminating(claim, services.clock.now(), why=why, message=message))
    services.telemetry.info("claim ends", claim_id=claim.claim_id, why=str(why))
    return reclaim(services, written)


def reclaim(services: Services, claim: Claim) -> Claim:
    """Ask for the end of every attempt that may be billed; returns the claim as written.

    An attempt without an id is left to the status loop, which finds it by mark or proves that it was
    never made. A provider that does not answer is asked again: nothing is recorded as gone.
    """
    now = services.clock.now()
    attempts = []
    for attempt in claim.attempts:
        if _owes_delete(attempt, now) and _terminate(services, claim, attempt):
            attempts.append(attempt.model_copy(update={"delete_accepted_at": attempt.delete_accepted_at or now}))
        else:
            attempts.append(attempt)
    if tuple(attempts) == claim.attempts and claim.next_action_at is not None and claim.next_action_at > now:
        return claim
    return services.claims.save(
        claim, move(claim, claim.phase, now, attempts=tuple(attempts), next_action_at=now + RECLAIM_RETRY)
    )


def _owes_delete(attempt: Attempt, now: datetime) -> bool:
    """Whether to ask (again): a delete that was accepted but not seen to work is repeated."""
    if attempt.confirmed_gone or attempt.instance_id is None:
        return False
    return attempt.delete_accepted_at is None or now - attempt.delete_accepted_at >= RECLAIM_RETRY


def _terminate(services: Services, claim: Claim, attempt: Attempt) -> bool:
    instance_id = str(attempt.instance_id)
    if attempt.strange:
        services.telemetry.error(
            "instance without our mark: not touched", claim_id=claim.claim_id, instance_id=instance_id
        )
        return False
    try:
        provider = services.providers.get(attempt.candidate.provider)
        if not is_of(services, attempt, account_of(services, provider)):
            raise ProviderUnavailableError("another account answers: its word on this instance is none")
        provider.terminate(instance_id)
    except ProviderError as error:
        services.telemetry.warning(
            "terminate not accepted", claim_id=claim.claim_id, instance_id=instance_id, error=str(error)
        )
        return False
    return True
