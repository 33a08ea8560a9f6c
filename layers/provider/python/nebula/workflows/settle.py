"""Applying one assessment: block first, then the ledger, then the Pod, then whoever is to be woken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from nebula.domain.claim import Claim, Phase, TerminationReason
from nebula.domain.instance import Instance, InstanceListing, InstanceState
from nebula.events.details import DetailType
from nebula.kubernetes.api import ConflictError as KubernetesConflictError
from nebula.kubernetes.api import InvalidError, KubernetesApi, KubernetesError, NotFoundError
from nebula.kubernetes.node import node_name
from nebula.kubernetes.owners import what_follows
from nebula.kubernetes.pod import Pod
from nebula.kubernetes.status import status_patch
from nebula.lifecycle.assessment import Assessment, assess
from nebula.lifecycle.pod_status import desired_status
from nebula.lifecycle.transitions import terminated, terminating, with_attempt
from nebula.placement.blocklist import block_for
from nebula.providers.base import Provider
from nebula.providers.errors import ProviderError
from nebula.workflows.announce import publish_claim
from nebula.workflows.pod_report import show_condition, show_event
from nebula.workflows.rejection import announce_rejection
from nebula.workflows.services import Services
from nebula.workflows.withdraw import AlreadyReleasedError, defuse

#: Readings of a Pod to which others write while its status is written.
_STATUS_TRIES = 2
_EVENTS = {
    TerminationReason.INSTANCE_LOST: "InstanceLost",
    TerminationReason.INSTANCE_FAILED: "InstanceFailed",
    TerminationReason.PREEMPTED: "Preempted",
    TerminationReason.START_DEADLINE: "StartDeadline",
}


def settle(
    services: Services,
    claim: Claim,
    assessment: Assessment | None,
    provider: Provider | None,
    api: KubernetesApi,
    pods: Mapping[str, Pod] | None,
) -> Claim:
    """Write what an assessment (None: the provider is unknown) and the Pod mean for a claim.

    ``pods`` is None when the cluster is unknown: then nothing is concluded from it and nothing is
    projected. Raises ``stores.claims.ConflictError`` when the claim moved meanwhile.
    """
    pod = None if pods is None else pods.get(claim.pod_uid)
    assessment = assessment or Assessment(
        claim, finished=claim.phase is Phase.TERMINATING and not claim.unconfirmed
    )  # fmt: skip
    if assessment.confirm and not _confirmed_absent(reading := _read(services, claim, provider)):
        assessment = _as_read(services, claim, provider, reading)
    assessment = _with_pod(services, assessment, pod)
    after = assessment.claim
    if assessment.finished:
        return _finish(services, claim, after, api, pod) if pods is not None else claim
    if assessment.failure is not None and after.candidate is not None:
        block = block_for(assessment.failure, after.candidate, None, services.clock.now())
        if block is not None:
            services.blocks.put(block)
    if after.phase is Phase.WITHDRAWING and not _may_withdraw(services, api, claim):
        return claim
    if after != claim:
        after = services.claims.save(claim, after)
        _tell(services, claim, after, api, pod)
    if assessment.ready:
        publish_claim(services, DetailType.INSTANCE_READY, after)
    if pod is not None:
        project(services, after, api, pod)
    return after


class _Reading(NamedTuple):
    """A provider's answer for one id, if it gave one."""

    answered: bool = False
    instance: Instance | None = None


def _read(services: Services, claim: Claim, provider: Provider | None) -> _Reading:
    if provider is None or claim.instance_id is None:
        return _Reading()
    try:
        return _Reading(True, provider.get(claim.instance_id))
    except ProviderError as error:
        services.telemetry.warning("absence not confirmed", claim_id=claim.claim_id, error=str(error))
        return _Reading()


def _confirmed_absent(reading: _Reading) -> bool:
    """The last word on an absence is the provider's answer for the id itself.

    An instance that lists leave out may still be read as terminated (field report X15).
    """
    found = reading.instance
    return reading.answered and (found is None or found.state is InstanceState.TERMINATED)


def _as_read(services: Services, claim: Claim, provider: Provider | None, reading: _Reading) -> Assessment:
    """An instance that lists leave out and that lives, judged by the read of its id: it is billed all the same.

    That it is missing from lists stays noted: each look asks for it anew, and none writes that.
    """
    found, attempt, now = reading.instance, claim.attempts[-1], services.clock.now()
    if found is None or provider is None or found.mark != claim.mark(services.installation):
        return Assessment(claim)
    listing = InstanceListing(began_at=now, instances=(found,))
    assessment = assess(claim, listing, provider.capabilities, services.installation, now)
    missing = with_attempt(assessment.claim, absent_since=attempt.absent_since)
    return replace(assessment, claim=assessment.claim.model_copy(update={"attempts": missing}))


def _with_pod(services: Services, assessment: Assessment, pod: Pod | None) -> Assessment:
    """Add what the Pod itself says: a delete, or an end that it already shows."""
    after, now = assessment.claim, services.clock.now()
    if pod is None or after.phase in (Phase.TERMINATING, Phase.TERMINATED):
        return assessment
    if pod.deletion_timestamp is not None:
        ending = terminating(after, now, why=TerminationReason.POD_DELETED, message="the Pod is being deleted")
        return replace(assessment, claim=ending, ready=False)
    if pod.terminal and after.phase is Phase.RELEASED:
        ending = terminating(after, now, why=TerminationReason.POD_FINISHED, message=f"the Pod is {pod.phase}")
        return replace(assessment, claim=ending)
    return assessment


def _may_withdraw(services: Services, api: KubernetesApi, claim: Claim) -> bool:
    """Whether no release of ours can still get through; a Pod that is released is left to provisioning."""
    try:
        defuse(api, claim, services.clock.now())
    except (AlreadyReleasedError, KubernetesError) as error:
        services.telemetry.info("not withdrawn yet", claim_id=claim.claim_id, why=type(error).__name__)
        return False
    return True


def _tell(services: Services, before: Claim, after: Claim, api: KubernetesApi, pod: Pod | None) -> None:
    if before.phase is after.phase:
        return
    services.telemetry.info(
        "claim moved", claim_id=after.claim_id, was=str(before.phase), now=str(after.phase), reason=after.reason
    )
    if after.phase is Phase.PENDING and (after.next_action_at or after.updated_at) <= after.updated_at:
        announce_rejection(services, after)
    reason = _EVENTS.get(after.termination_reason) if after.termination_reason is not None else None
    if after.phase is Phase.TERMINATING and reason is not None and pod is not None:
        show_event(services, api, pod, reason=reason, message=after.message, type_="Warning")
    if after.phase in (Phase.TERMINATING, Phase.WITHDRAWING):
        publish_claim(services, DetailType.CLAIM_DUE, after)


def project(services: Services, claim: Claim, api: KubernetesApi, pod: Pod) -> bool:
    """Write the Pod's status where it differs from what the claim says it is; never where a kubelet does.

    False when somebody else's write came first, also on a second reading: what is to be said has not been said.
    """
    if _elsewhere(claim, pod):
        return True
    for _ in range(_STATUS_TRIES):
        patch = _wanted_patch(claim, pod, services.clock.now())
        if patch is None:
            return True
        try:
            api.patch_pod_status(pod.namespace, pod.name, patch)
        except NotFoundError:
            return True
        except InvalidError as error:
            services.telemetry.error("pod status refused", pod=f"{pod.namespace}/{pod.name}", error=str(error))
            services.telemetry.count("Defects")
            return True
        except KubernetesConflictError:
            again = _unlisted(api, claim)
            if again is None:
                return True
            pod = again
        else:
            return True
    return False


def _elsewhere(claim: Claim, pod: Pod) -> bool:
    """Whether the Pod runs on a Node that is not ours: somebody took its gate off, and that Node's kubelet ends it."""
    ours = {node_name(attempt.candidate.provider) for attempt in claim.attempts}
    return pod.node_name is not None and pod.node_name not in ours


def _wanted_patch(claim: Claim, pod: Pod, now: datetime) -> dict[str, Any] | None:
    if not pod.containers or (pod.node_name is None and claim.phase is not Phase.TERMINATING):
        return None
    container = pod.containers[0]
    desired = desired_status(
        claim,
        now,
        container_name=str(container.get("name", "")),
        image=str(container.get("image", "")),
        restart_policy=pod.restart_policy,
        active_deadline_seconds=pod.active_deadline_seconds,
    )
    if desired is not None and desired.phase == "Failed" and pod.deletion_timestamp is None:
        text = "; ".join(part for part in (desired.message, what_follows(pod)) if part)
        desired = replace(desired, message=text)
    return None if desired is None else status_patch(pod, desired, now)


def _finish(services: Services, before: Claim, after: Claim, api: KubernetesApi, pod: Pod | None) -> Claim:
    """Nothing is billed any more: the Pod's last word, then the ledger's (written last).

    A last word that did not get through leaves the claim as it is, for the next look.
    """
    pod = pod or _unlisted(api, after)
    if pod is not None:
        deleted = after.termination_reason is TerminationReason.POD_DELETED
        says_it = not deleted or pod.deletion_timestamp is not None
        if says_it and not project(services, after, api, pod):
            return before
        if pod.gated and after.termination_reason is TerminationReason.ABANDONED:
            show_condition(services, api, pod, reason="Abandoned", message=after.message)
        if pod.deletion_timestamp is not None and not _elsewhere(after, pod):
            api.delete_pod(pod.namespace, pod.name, pod.uid)
    written = services.claims.save(before, terminated(after, services.clock.now()))
    services.telemetry.info("claim terminated", claim_id=after.claim_id, reason=str(after.termination_reason))
    return written


def _unlisted(api: KubernetesApi, claim: Claim) -> Pod | None:
    """The claim's Pod read by name: one that lost its opt-in label is in no list, and still wants its last word."""
    found = api.get_pod(claim.namespace, claim.pod_name)
    pod = Pod.from_object(found) if found is not None else None
    return pod if pod is not None and pod.uid == claim.pod_uid else None
