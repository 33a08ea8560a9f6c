"""What a Pod's status should say, from its claim and the time. Pure.

A kubelet's phase table, kept without a kubelet:

=============  ===========  =====================  ======================================
restartPolicy  exit 0       exit other than 0      exit unknown, instance vanished
=============  ===========  =====================  ======================================
Never          Succeeded    Failed                 Failed
OnFailure      Succeeded    Failed (no restart)    Failed
Always         Failed       Failed                 Failed, so that the owner replaces it
=============  ===========  =====================  ======================================

``DisruptionTarget`` is set where the machine went and not the program: preempted, or lost without a
word (what Kubernetes' own garbage collector does to a Pod whose Node vanished). It is not set where
the image or the program may be at fault.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from nebula.domain.claim import Claim, Phase, TerminationReason
from nebula.domain.instance import InstanceState
from nebula.domain.workload import RestartPolicy

#: Exit code shown when nobody knows it: that of a killed process. Zero would read as success.
UNKNOWN_EXIT_CODE: Final = 137
_UNKNOWN_EXIT: Final = f"exit code unknown, shown as {UNKNOWN_EXIT_CODE}"
_ENDED: Final = frozenset({InstanceState.EXITED, InstanceState.FAILED, InstanceState.TERMINATED})


@dataclass(frozen=True)
class ContainerState:
    """Exactly one of waiting (``reason``), running (``started_at``) and terminated (``exit_code``)."""

    kind: str
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    exit_code: int | None = None


@dataclass(frozen=True)
class Condition:
    """One Pod condition; ``status`` is ``True``, ``False`` or ``Unknown``."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


@dataclass(frozen=True)
class PodStatus:
    """The status that a Pod should show.

    ``start_time`` is that of the release, written once; None for a Pod that was never released.
    """

    phase: str
    container_name: str
    image: str
    container: ContainerState
    conditions: tuple[Condition, ...] = field(default=())
    reason: str = ""
    message: str = ""
    start_time: datetime | None = None

    @property
    def terminal(self) -> bool:
        """Whether the phase is Succeeded or Failed."""
        return self.phase in ("Succeeded", "Failed")


@dataclass(frozen=True)
class _End:
    """How a Pod ends."""

    phase: str
    reason: str
    message: str
    container_reason: str
    exit_code: int
    disruption: str = ""


def desired_status(
    claim: Claim,
    now: datetime,
    *,
    container_name: str,
    image: str,
    restart_policy: str,
    active_deadline_seconds: int | None = None,
) -> PodStatus | None:
    """The status of a released Pod; None while there is nothing to say.

    Nothing is said before release (the Pod is gated, its condition ``Released`` speaks) unless the Pod is
    deleted, and none of a claim that ends while its workload may still run: a Pod shown as finished would
    be replaced beside it. ``activeDeadlineSeconds`` counts from release; nobody else enforces it.
    """
    if claim.released_at is None and claim.termination_reason is not TerminationReason.POD_DELETED:
        return None
    end = _end(claim, now, restart_policy, active_deadline_seconds)
    if end is not None:
        return _ended(claim, end, now, container_name, image)
    if claim.phase is not Phase.RELEASED:
        return None
    if claim.observation.state is InstanceState.RUNNING:
        return _running(claim, now, container_name, image)
    if claim.observation.unready_since is not None:
        return _unready(claim, now, container_name, image)
    return _starting(claim, container_name, image)


def _end(claim: Claim, now: datetime, restart_policy: str, active_deadline_seconds: int | None) -> _End | None:
    ended = claim.observation.state in _ENDED
    stopped = ended or not claim.unconfirmed or _taken_back(claim)
    why = claim.termination_reason
    by_reason = _by_reason(claim, why) if why is not None and stopped else None
    if by_reason is not None:
        return by_reason
    if ended:
        return _by_exit(claim, restart_policy)
    if why in (None, TerminationReason.POD_FINISHED) and _past_deadline(claim, now, active_deadline_seconds):
        text = f"active for longer than {active_deadline_seconds}s; {_UNKNOWN_EXIT}"
        return _End("Failed", "DeadlineExceeded", text, "DeadlineExceeded", UNKNOWN_EXIT_CODE)
    if why is not None and stopped:
        return _by_exit(claim, restart_policy)
    return None


def _taken_back(claim: Claim) -> bool:
    """The provider takes the machine and has accepted its end: the owner need not wait for the last second."""
    preempted = claim.termination_reason is TerminationReason.PREEMPTED
    return preempted and all(attempt.delete_accepted_at is not None for attempt in claim.unconfirmed)


def _past_deadline(claim: Claim, now: datetime, seconds: int | None) -> bool:
    return (
        seconds is not None and claim.released_at is not None and now >= claim.released_at + timedelta(seconds=seconds)
    )


_DISRUPTIONS: Final = {TerminationReason.PREEMPTED: "SpotReclaimed", TerminationReason.INSTANCE_LOST: "InstanceLost"}
_FAULTS: Final = {
    TerminationReason.PREEMPTED: "the provider reclaimed the instance",
    TerminationReason.INSTANCE_LOST: "the instance vanished at the provider",
    TerminationReason.START_DEADLINE: "the instance did not start in time",
    TerminationReason.ABANDONED: "the instance was abandoned by an operator and may still exist",
}


def _by_reason(claim: Claim, why: TerminationReason) -> _End | None:
    """An end that the provider or a person caused, whatever the program did."""
    fault = _FAULTS.get(why)
    if fault is None:
        return None
    known = claim.observation.exit_code
    parts = [fault, claim.observation.message, "" if known else _UNKNOWN_EXIT]
    message = "; ".join(part for part in parts if part)
    return _End("Failed", str(why), message, str(why), known or UNKNOWN_EXIT_CODE, _DISRUPTIONS.get(why, ""))


def _by_exit(claim: Claim, restart_policy: str) -> _End:
    seen = claim.observation
    if seen.exit_code == 0 and restart_policy != RestartPolicy.ALWAYS:
        return _End("Succeeded", "", seen.message, "Completed", 0)
    if seen.exit_code is None:
        reason, cause = _unexplained(claim)
        message = "; ".join(part for part in (cause, seen.message, _UNKNOWN_EXIT) if part)
        return _End("Failed", reason, message, "Error", UNKNOWN_EXIT_CODE)
    word = "Error" if seen.exit_code else "Completed"
    return _End("Failed", "ContainerExited", seen.message or f"exit code {seen.exit_code}", word, seen.exit_code)


def _unexplained(claim: Claim) -> tuple[str, str]:
    """Reason and cause of an end without an exit code."""
    if claim.termination_reason is TerminationReason.POD_DELETED:
        return "", "stopped because the Pod was deleted"
    if claim.observation.unready_since is not None:
        return "InstanceFailed", "the instance ran, and was then reported as neither running nor ended for too long"
    failed = claim.observation.state is InstanceState.FAILED
    if failed or claim.termination_reason is TerminationReason.INSTANCE_FAILED:
        return "InstanceFailed", "the provider reports the instance as failed"
    return "ContainerExited", "the container ended"


def _ended(claim: Claim, end: _End, now: datetime, container_name: str, image: str) -> PodStatus:
    seen = claim.observation
    succeeded = end.phase == "Succeeded"
    why = "PodCompleted" if succeeded else "PodFailed"
    conditions = [
        Condition("PodReadyToStartContainers", "False"),
        Condition("Initialized", "True", "PodCompleted" if succeeded else ""),
        Condition("ContainersReady", "False", why),
        Condition("Ready", "False", why),
    ]
    if end.disruption:
        conditions.append(Condition("DisruptionTarget", "True", end.disruption, end.message))
    container = ContainerState(
        "terminated",
        reason=end.container_reason,
        message=end.message,
        started_at=seen.running_since,
        finished_at=seen.ended_at or now,
        exit_code=end.exit_code,
    )
    return PodStatus(
        phase=end.phase,
        reason=end.reason,
        message=end.message,
        container_name=container_name,
        image=image,
        container=container,
        conditions=tuple(conditions),
        start_time=claim.released_at,
    )


def _running(claim: Claim, now: datetime, container_name: str, image: str) -> PodStatus:
    started = claim.observation.running_since or now
    return PodStatus(
        phase="Running",
        container_name=container_name,
        image=image,
        container=ContainerState("running", started_at=started),
        conditions=(
            Condition("PodReadyToStartContainers", "True"),
            Condition("Initialized", "True"),
            Condition("ContainersReady", "True"),
            Condition("Ready", "True"),
        ),
        start_time=claim.released_at,
    )


def _unready(claim: Claim, now: datetime, container_name: str, image: str) -> PodStatus:
    """An instance that ran and is not reported as running now: a Pod that was Running never goes back to Pending."""
    seen = claim.observation
    why = seen.message or "the provider does not report the instance as running"
    return replace(
        _running(claim, now, container_name, image),
        conditions=(
            Condition("PodReadyToStartContainers", "True"),
            Condition("Initialized", "True"),
            Condition("ContainersReady", "False", "InstanceNotReady", why),
            Condition("Ready", "False", "InstanceNotReady", why),
        ),
    )


def _starting(claim: Claim, container_name: str, image: str) -> PodStatus:
    waiting = f"containers with unready status: [{container_name}]"
    return PodStatus(
        phase="Pending",
        container_name=container_name,
        image=image,
        container=ContainerState("waiting", reason="ContainerCreating", message=claim.observation.message),
        conditions=(
            Condition("PodReadyToStartContainers", "False"),
            Condition("Initialized", "True"),
            Condition("ContainersReady", "False", "ContainersNotReady", waiting),
            Condition("Ready", "False", "ContainersNotReady", waiting),
        ),
        start_time=claim.released_at,
    )
