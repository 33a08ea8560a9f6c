"""Letting the Pod go to its Node: intent in the ledger, then one guarded patch."""

from __future__ import annotations

from datetime import datetime, timedelta

from nebula.domain.claim import Claim, Phase, TerminationReason
from nebula.kubernetes import names
from nebula.kubernetes.api import (
    ClusterUnavailableError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    KubernetesApi,
    KubernetesError,
    NotFoundError,
)
from nebula.kubernetes.pod import Pod
from nebula.kubernetes.release import release_patch
from nebula.lifecycle.deadlines import release_given_up
from nebula.lifecycle.transitions import move, released, releasing, withdrawing
from nebula.workflows.pod_checks import PodReading, Standing, node_trouble, read_pod
from nebula.workflows.pod_report import show_condition, show_event, show_let_go, show_rejection
from nebula.workflows.services import Services
from nebula.workflows.terminate import end_claim
from nebula.workflows.withdraw import AlreadyReleasedError, defuse

#: Re-reads after a 409 in one pass; the Pod is busy, the next pass goes on.
MAX_CONFLICTS = 4
#: How soon a release that could not be finished is tried again.
RETRY = timedelta(seconds=15)


def release(services: Services, claim: Claim, checked: Pod | None = None) -> Claim:
    """Release the Pod of a Provisioned or Releasing claim; returns the claim as written.

    Everything is read again; a Pod that changed since its fields were used withdraws the instance, and so does one
    that could not be released within ``releaseDeadline``: after it no release patch is sent.
    ``checked`` is the Pod as this very call found it fit before the create: the patch's guard refuses it where
    anything of the Pod has changed since, and then it is read again like any other.
    Raises ``stores.claims.ConflictError`` when the claim moved, ``ClusterUnavailableError`` when the
    Pod cannot even be read.
    """
    api = services.clusters.get(claim.cluster)
    sole = claim.phase is Phase.PROVISIONED
    for _ in range(MAX_CONFLICTS):
        reading = read_pod(api, claim) if checked is None else PodReading(Standing.READY, checked)
        unread, checked = checked is not None, None
        if reading.standing is not Standing.READY or reading.pod is None:
            return _not_releasable(services, api, claim, reading)
        pod = reading.pod
        if pod.fields_hash() != claim.pod_fields_hash:
            return _withdraw(services, api, claim, pod, "PodChanged", "the Pod changed after its instance was made")
        trouble = node_trouble(api, claim.attempts[-1].candidate.provider, pod)
        if trouble:
            return _wait(services, claim, f"not released yet: {trouble}", api, pod)
        if claim.phase is Phase.PROVISIONED:
            now = services.clock.now()
            claim = services.claims.save(claim, releasing(claim, now, again_at=now + RETRY))
        if release_given_up(claim, services.clock.now()):
            return _withdraw(services, api, claim, pod, "ReleaseDeadline", "the release did not get through")
        try:
            api.patch_pod(pod.namespace, pod.name, _patch(claim, pod))
        except (ConflictError, NotFoundError):
            continue
        except (InvalidError, ForbiddenError) as error:
            if unread and isinstance(error, InvalidError):
                # So a server answers too where another Pod of that name stands there by now.
                continue
            refusal = f"the API server refused: {error}"
            return _withdraw(services, api, claim, pod, "ReleaseRefused", refusal, refused=sole)
        except ClusterUnavailableError as error:
            return _wait(services, claim, f"release outcome unknown: {error}")
        return _done(services, api, claim, pod)
    return _wait(services, claim, "the Pod kept changing while it was released", api, pod)


def _patch(claim: Claim, pod: Pod) -> dict[str, object]:
    candidate = claim.attempts[-1].candidate
    seen = claim.observation
    price = seen.cost_per_hour if seen.cost_per_hour is not None else candidate.price.total
    annotations = {
        names.ANNOTATION_CLAIM: claim.claim_id,
        names.ANNOTATION_INSTANCE_ID: claim.instance_id or "",
        names.ANNOTATION_CAPACITY_TYPE: str(candidate.capacity_type),
        names.ANNOTATION_REGION: seen.region or candidate.region,
        names.ANNOTATION_PRICE_PER_HOUR: f"{price:f}",
    }
    if seen.endpoint:
        annotations[names.ANNOTATION_ENDPOINT] = seen.endpoint
    return release_patch(pod, provider=candidate.provider, annotations=annotations)


def _done(services: Services, api: KubernetesApi, claim: Claim, pod: Pod | None) -> Claim:
    written = services.claims.save(claim, released(claim, services.clock.now()))
    services.telemetry.info("pod released", claim_id=claim.claim_id, instance_id=claim.instance_id)
    if pod is not None:
        show_event(services, api, pod, reason="Released", message=written.message)
    return written


def _not_releasable(services: Services, api: KubernetesApi, claim: Claim, reading: PodReading) -> Claim:
    standing = reading.standing
    if standing is Standing.RELEASED:
        return _already_released(services, api, claim, reading.pod)
    if standing is Standing.GONE:
        return end_claim(services, claim, TerminationReason.POD_DELETED, reading.detail)
    if standing is Standing.FOREIGN_GATES:
        return _wait(services, claim, reading.detail, api, reading.pod)
    if standing is Standing.UNGATED and reading.pod is not None:
        show_let_go(services, api, reading.pod)
        return end_claim(services, claim, TerminationReason.POD_DELETED, "the gate was removed by somebody else")
    return _withdraw(services, api, claim, reading.pod, str(standing), reading.detail)


def _already_released(services: Services, api: KubernetesApi, claim: Claim, pod: Pod | None) -> Claim:
    """An earlier patch of ours went through although its answer was lost."""
    if claim.phase is Phase.PROVISIONED:
        now = services.clock.now()
        claim = services.claims.save(claim, releasing(claim, now, again_at=now + RETRY))
    return _done(services, api, claim, pod)


def _wait(
    services: Services, claim: Claim, message: str, api: KubernetesApi | None = None, pod: Pod | None = None
) -> Claim:
    """Try again shortly, and say on the Pod why; the release deadline is the status loop's to keep.

    Nothing is said on a Pod whose release may just have gone through.
    """
    if api is not None and pod is not None:
        show_condition(services, api, pod, reason="Provisioning", message=message)
    now = services.clock.now()
    attempts = (*claim.attempts[:-1], claim.attempts[-1].model_copy(update={"lease_until": now}))
    return services.claims.save(
        claim, move(claim, claim.phase, now, attempts=attempts, next_action_at=now + RETRY, message=message)
    )


def _withdraw(
    services: Services,
    api: KubernetesApi,
    claim: Claim,
    pod: Pod | None,
    reason: str,
    message: str,
    *,
    refused: bool = False,
) -> Claim:
    """Take the instance back. A release whose patch may still be on its way is defused first.

    ``refused``: every release patch of this claim's attempt was sent here and answered with a refusal.
    """
    try:
        if not (refused and _alone(services, claim, services.clock.now())):
            defuse(api, claim, services.clock.now())
    except AlreadyReleasedError:
        return _already_released(services, api, claim, pod)
    except KubernetesError as error:
        return _wait(services, claim, f"{message}; cannot withdraw yet: {error}", api, pod)
    written = services.claims.save(
        claim, withdrawing(claim, services.clock.now(), reason=reason, message=message, exclude=False)
    )
    show_rejection(services, api, pod, written)
    return written


def _alone(services: Services, claim: Claim, now: datetime) -> bool:
    """Whether nobody else can have begun to release: our lease outlasts whatever call is under way."""
    return now + services.longest_call < claim.attempts[-1].lease_until
