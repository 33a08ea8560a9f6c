"""What a Pod should show, from its claim: the phase table of a kubelet without one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from nebula.domain.claim import AttemptOutcome, Claim, Observation, Phase, TerminationReason
from nebula.domain.instance import InstanceState
from nebula.lifecycle.pod_status import PodStatus, desired_status

from tests.support.pods import NOW, claim

LATER = NOW + timedelta(minutes=5)


def desired(found: Claim, policy: str = "Always", *, deadline: int | None = None) -> PodStatus | None:
    return desired_status(
        found, LATER, container_name="main", image="i", restart_policy=policy, active_deadline_seconds=deadline
    )


def shown(found: Claim, policy: str = "Always", **options: Any) -> PodStatus:
    status = desired(found, policy, **options)
    assert status is not None
    return status


def seen(state: InstanceState, **fields: Any) -> dict[str, Any]:
    return {"observation": Observation(state=state, **fields)}


def conditions(status: PodStatus) -> dict[str, str]:
    return {condition.type: condition.status for condition in status.conditions}


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.PLACED, Phase.PROVISIONING, Phase.PROVISIONED, Phase.RELEASING])
def test_a_gated_pod_has_no_status_of_its_own(phase: Phase) -> None:
    assert desired(claim(phase, released_at=None, **seen(InstanceState.RUNNING))) is None


def test_a_released_pod_whose_instance_starts_is_pending() -> None:
    status = shown(claim(**seen(InstanceState.PENDING)))
    assert (status.phase, status.container.kind, status.container.reason) == ("Pending", "waiting", "ContainerCreating")
    assert status.start_time == NOW
    assert conditions(status) == {
        "PodReadyToStartContainers": "False",
        "Initialized": "True",
        "ContainersReady": "False",
        "Ready": "False",
    }


def test_a_running_instance_is_a_ready_pod() -> None:
    status = shown(claim(**seen(InstanceState.RUNNING, running_since=NOW)))
    assert (status.phase, status.container.kind, status.container.started_at) == ("Running", "running", NOW)
    assert set(conditions(status).values()) == {"True"}


@pytest.mark.parametrize(
    ("policy", "exit_code", "phase", "reason", "word"),
    [
        ("Never", 0, "Succeeded", "", "Completed"),
        ("OnFailure", 0, "Succeeded", "", "Completed"),
        ("Always", 0, "Failed", "ContainerExited", "Completed"),
        ("Never", 3, "Failed", "ContainerExited", "Error"),
        ("OnFailure", 3, "Failed", "ContainerExited", "Error"),
        ("Always", 3, "Failed", "ContainerExited", "Error"),
    ],
)
def test_x3_y5_the_phase_follows_the_exit_code_and_the_restart_policy(
    policy: str, exit_code: int, phase: str, reason: str, word: str
) -> None:
    status = shown(claim(**seen(InstanceState.EXITED, exit_code=exit_code, ended_at=NOW)), policy)
    assert (status.phase, status.reason, status.container.reason) == (phase, reason, word)
    assert (status.container.exit_code, status.container.finished_at) == (exit_code, NOW)
    assert conditions(status)["Ready"] == "False"
    assert "DisruptionTarget" not in conditions(status)


@pytest.mark.parametrize("policy", ["Never", "OnFailure", "Always"])
@pytest.mark.parametrize(
    ("state", "reason"), [(InstanceState.EXITED, "ContainerExited"), (InstanceState.FAILED, "InstanceFailed")]
)
def test_an_unknown_exit_code_is_never_success_and_is_called_unknown(
    policy: str, state: InstanceState, reason: str
) -> None:
    status = shown(claim(**seen(state)), policy)
    assert (status.phase, status.reason, status.container.exit_code) == ("Failed", reason, 137)
    assert "exit code unknown, shown as 137" in status.message


@pytest.mark.parametrize(
    ("why", "disruption"),
    [
        (TerminationReason.PREEMPTED, "SpotReclaimed"),
        (TerminationReason.INSTANCE_LOST, "InstanceLost"),
        (TerminationReason.START_DEADLINE, None),
        (TerminationReason.INSTANCE_FAILED, None),
        (TerminationReason.ABANDONED, None),
    ],
)
def test_f5_disruption_target_is_set_where_the_machine_went_and_not_the_program(
    why: TerminationReason, disruption: str | None
) -> None:
    ended = claim(Phase.TERMINATING, outcome=AttemptOutcome.GONE, termination_reason=why, **seen(InstanceState.RUNNING))
    status = shown(ended, "Never")
    found = {c.reason for c in status.conditions if c.type == "DisruptionTarget" and c.status == "True"}
    assert (status.phase, status.reason) == ("Failed", str(why))
    assert found == ({disruption} if disruption else set())
    assert status.container.exit_code == 137


@pytest.mark.parametrize("why", sorted(TerminationReason))
def test_a_pod_whose_workload_may_still_run_is_not_shown_as_ended(why: TerminationReason) -> None:
    ending = claim(Phase.TERMINATING, termination_reason=why, **seen(InstanceState.RUNNING))
    assert desired(ending) is None


def test_a_deleted_pod_ends_once_its_instance_is_gone_even_if_it_was_never_released() -> None:
    deleted: dict[str, Any] = {"outcome": AttemptOutcome.GONE, "termination_reason": TerminationReason.POD_DELETED}
    for released_at in (NOW, None):
        status = shown(claim(Phase.TERMINATING, released_at=released_at, **deleted))
        assert (status.phase, status.reason) == ("Failed", "")
        assert "because the Pod was deleted" in status.message
        assert status.start_time == released_at


def test_a_deleted_pod_that_had_finished_by_itself_succeeded() -> None:
    found = claim(
        Phase.TERMINATING, termination_reason=TerminationReason.POD_DELETED, **seen(InstanceState.EXITED, exit_code=0)
    )
    assert shown(found, "Never").phase == "Succeeded"


@pytest.mark.parametrize("state", [InstanceState.PENDING, InstanceState.RUNNING])
def test_the_active_deadline_ends_a_pod(state: InstanceState) -> None:
    assert shown(claim(**seen(state)), "Never", deadline=301).phase != "Failed"
    status = shown(claim(**seen(state)), "Never", deadline=300)
    assert (status.phase, status.reason, status.container.reason) == ("Failed", "DeadlineExceeded", "DeadlineExceeded")
    assert status.container.exit_code == 137


def test_an_end_before_the_deadline_was_noticed_counts_as_the_end_it_was() -> None:
    done = claim(**seen(InstanceState.EXITED, exit_code=0, ended_at=NOW))
    assert shown(done, "Never", deadline=1).phase == "Succeeded"


def test_the_deadline_is_remembered_while_its_claim_ends() -> None:
    ending = claim(Phase.TERMINATING, termination_reason=TerminationReason.POD_FINISHED, **seen(InstanceState.RUNNING))
    assert shown(ending, "Never", deadline=60).reason == "DeadlineExceeded"
