"""A provider's warning on the bus: the instance goes soon (field report F8: within seconds, not behind others).

Event shapes: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
and https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/monitoring-instance-state-changes.html.
"""

from __future__ import annotations

from nebula.domain.claim import Claim, Phase, TerminationReason
from nebula.events.envelope import Envelope, MalformedEventError
from nebula.kubernetes.api import KubernetesApi, KubernetesError
from nebula.kubernetes.pod import Pod
from nebula.lifecycle.transitions import terminating, withdrawing
from nebula.placement.blocklist import block_for
from nebula.providers.errors import NoCapacityError
from nebula.stores.claims import ConflictError
from nebula.workflows.pod_report import show_event
from nebula.workflows.services import Services
from nebula.workflows.settle import project
from nebula.workflows.terminate import reclaim
from nebula.workflows.withdraw import AlreadyReleasedError, defuse

SPOT_WARNING = "EC2 Spot Instance Interruption Warning"
STATE_CHANGE = "EC2 Instance State-change Notification"
SIMULATED_WARNING = "Simulated Instance Interruption Warning"
INTERRUPTION_TYPES = frozenset({SPOT_WARNING, STATE_CHANGE, SIMULATED_WARNING})
_ENDING = frozenset({"shutting-down", "stopping", "stopped", "terminated"})


def interrupted(services: Services, envelope: Envelope) -> Claim | None:
    """End or withdraw the claim of an instance that its provider takes back.

    Returns the claim as written; None for an instance that no claim holds, which has no effect at all
    (another installation may share the account). A state change alters nothing: what it means is the
    status loop's to decide, whose next look is seconds away.
    """
    instance_id = envelope.detail.get("instance-id")
    if not isinstance(instance_id, str) or not instance_id:
        raise MalformedEventError("detail.instance-id: expected a text")
    if envelope.detail_type == STATE_CHANGE and envelope.detail.get("state") not in _ENDING:
        return None
    claim = services.claims.find_by_instance(instance_id)
    if claim is None or not claim.live or claim.instance_id != instance_id:
        services.telemetry.info("interruption of an instance that is not ours", instance_id=instance_id)
        return None
    if envelope.detail_type == STATE_CHANGE:
        services.telemetry.info("instance state changed", claim_id=claim.claim_id, instance_id=instance_id)
        return claim
    try:
        return _take_back(services, claim)
    except (ConflictError, AlreadyReleasedError):
        return services.claims.get(claim.claim_id)


def _take_back(services: Services, claim: Claim) -> Claim:
    now = services.clock.now()
    failure = NoCapacityError(f"{claim.attempts[-1].candidate.provider} takes instance {claim.instance_id} back")
    block = block_for(failure, claim.attempts[-1].candidate, None, now)
    if block is not None:
        services.blocks.put(block)
    if claim.phase is Phase.RELEASED:
        ending = terminating(claim, now, why=TerminationReason.PREEMPTED, message=str(failure))
    elif claim.phase in (Phase.PROVISIONED, Phase.RELEASING):
        defuse(services.clusters.get(claim.cluster), claim, now)
        ending = withdrawing(claim, now, reason="Preempted", message=str(failure), exclude=False)
    else:
        return claim
    written = reclaim(services, services.claims.save(claim, ending))
    if written.phase is Phase.TERMINATING:
        _show(services, written)
    return written


def _show(services: Services, claim: Claim) -> None:
    """``DisruptionTarget``, the terminal phase and the Event reach the Pod now, so that its owner replaces it now.

    The instance's end was asked for first. A cluster that does not answer hears of it at the next tick.
    """
    try:
        _project(services, services.clusters.get(claim.cluster), claim)
    except KubernetesError as error:
        services.telemetry.warning("pod not told yet", claim_id=claim.claim_id, error=str(error))


def _project(services: Services, api: KubernetesApi, claim: Claim) -> None:
    found = api.get_pod(claim.namespace, claim.pod_name)
    pod = Pod.from_object(found) if found is not None else None
    if pod is not None and pod.uid == claim.pod_uid:
        project(services, claim, api, pod)
        show_event(services, api, pod, reason="Preempted", message=claim.message, type_="Warning")
