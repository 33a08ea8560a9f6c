"""An operator's word that a claim is over although nobody can confirm it (field report B4).

For a provider whose key is gone, an account that is closed, a cluster that will not come back. What was
rented may still be billed: it counts as gone on the operator's word only, and the ledger and an event say so.
An abandoned instance that shows up again is an orphan like any other.
"""

from __future__ import annotations

from nebula.domain.claim import Claim
from nebula.domain.unreadable import UnreadableClaimError
from nebula.events.details import DetailType
from nebula.kubernetes.api import KubernetesError
from nebula.lifecycle.transitions import abandoned, terminated
from nebula.stores.claims import ConflictError
from nebula.workflows.announce import publish_claim
from nebula.workflows.services import Services

_TRIES = 3


class NotAbandonedError(Exception):
    """There is no such claim, it is over already, or it kept moving; the message says which."""


def abandon(services: Services, claim_id: str, reason: str) -> Claim:
    """End a claim as Abandoned; returns it as written.

    The status loop gives the Pod its last word and then terminates the claim. Where the Pod's cluster is
    not configured any more, or another one answers under its name, nobody can: the claim is terminated here.
    """
    for _ in range(_TRIES):
        claim = _read(services, claim_id)
        if claim is None:
            raise NotAbandonedError(f"there is no claim {claim_id}")
        if not claim.live:
            raise NotAbandonedError(f"claim {claim_id} is over: {claim.termination_reason}")
        message = f"abandoned by an operator: {reason}"
        try:
            written = services.claims.save(claim, abandoned(claim, services.clock.now(), message=message))
        except ConflictError:
            continue
        _audit(services, claim, written)
        return _without_cluster(services, written)
    raise NotAbandonedError(f"claim {claim_id} keeps moving; try again")


def _read(services: Services, claim_id: str) -> Claim | None:
    try:
        return services.claims.get(claim_id)
    except UnreadableClaimError as error:
        raise NotAbandonedError(f"{error}; use that release's command") from None


def _audit(services: Services, before: Claim, after: Claim) -> None:
    services.telemetry.error(
        "claim abandoned",
        claim_id=after.claim_id,
        was=str(before.phase),
        reason=after.message,
        unconfirmed=[f"{a.candidate.provider}/{a.instance_id or 'unknown id'}" for a in before.unconfirmed],
    )
    services.telemetry.count("ClaimsAbandoned")
    publish_claim(services, DetailType.CLAIM_ABANDONED, after)


def _without_cluster(services: Services, claim: Claim) -> Claim:
    try:
        api = services.clusters.get(claim.cluster)
        if not claim.cluster_uid or api.cluster_uid() == claim.cluster_uid:
            return claim
    except KeyError:
        pass
    except KubernetesError:
        return claim
    return services.claims.save(claim, terminated(claim, services.clock.now()))
