"""Status patches: valid to the API server's rules, guarded, written only on change, terminal sticky."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

import pytest
from nebula.domain.claim import AttemptOutcome, Claim, Observation, Phase, TerminationReason
from nebula.domain.instance import InstanceState
from nebula.kubernetes.api import ConflictError
from nebula.kubernetes.names import CONDITION_RELEASED
from nebula.kubernetes.pod import Pod
from nebula.kubernetes.release import release_patch
from nebula.kubernetes.status import condition_patch, status_patch
from nebula.lifecycle.pod_status import Condition, PodStatus, desired_status

from tests.support.pods import NOW, Cluster, Object, claim, container, pod_object

MINUTE = timedelta(minutes=1)


def wanted(found: Claim, policy: str = "Always") -> PodStatus:
    status = desired_status(found, NOW, container_name="main", image="example.com/app:1", restart_policy=policy)
    assert status is not None
    return status


def in_state(state: InstanceState, **fields: Any) -> PodStatus:
    return wanted(claim(observation=Observation(state=state, **fields)), "Never")


PENDING = in_state(InstanceState.PENDING)
RUNNING = in_state(InstanceState.RUNNING, running_since=NOW)
SUCCEEDED = in_state(InstanceState.EXITED, exit_code=0, running_since=NOW, ended_at=NOW)
PREEMPTED = wanted(
    claim(Phase.TERMINATING, outcome=AttemptOutcome.GONE, termination_reason=TerminationReason.PREEMPTED), "Never"
)


class Released(Cluster):
    """A cluster with one released Pod."""

    def __init__(self, **spec: Any) -> None:
        super().__init__()
        found = self.add(pod_object(container(), **{"restartPolicy": "Never", **spec}))
        self.api.patch_pod("team", "web-0", release_patch(found, provider="runpod", annotations={}))

    def show(self, status: PodStatus) -> Object | None:
        """Write what is missing; the patch."""
        patch = status_patch(self.read(), status, self.clock.now())
        if patch is not None:
            self.api.patch_pod_status("team", "web-0", patch)
        return patch

    def condition(self, type_: str) -> Object:
        found = self.read().condition(type_)
        assert found is not None
        return found


@pytest.mark.parametrize("status", [PENDING, RUNNING, SUCCEEDED, PREEMPTED], ids=lambda s: s.phase)
def test_a_status_is_accepted_whole_and_written_once(status: PodStatus) -> None:
    cluster = Released()
    assert cluster.show(status) is not None
    cluster.clock.advance(MINUTE)
    assert cluster.show(status) is None
    live = cluster.read().status
    assert live["phase"] == status.phase
    assert live["startTime"] == "2026-11-30T12:00:00Z"
    assert [c["name"] for c in live["containerStatuses"]] == ["main"]
    assert "podIP" not in live
    assert "hostIP" not in live


def test_a_life_pending_running_succeeded() -> None:
    cluster = Released()
    for status in (PENDING, RUNNING, SUCCEEDED):
        cluster.show(status)
        cluster.clock.advance(MINUTE)
    live = cluster.read().status
    (shown,) = live["containerStatuses"]
    assert shown["state"] == {
        "terminated": {
            "exitCode": 0,
            "reason": "Completed",
            "startedAt": "2026-11-30T12:00:00Z",
            "finishedAt": "2026-11-30T12:00:00Z",
        }
    }
    assert (live["phase"], cluster.condition("Ready")["reason"]) == ("Succeeded", "PodCompleted")


def test_f5_disruption_target_travels_in_the_patch_that_fails_the_pod() -> None:
    cluster = Released()
    cluster.show(RUNNING)
    patch = cluster.show(PREEMPTED)
    assert patch is not None
    types = {c["type"]: c["status"] for c in patch["status"]["conditions"]}
    assert patch["status"]["phase"] == "Failed"
    assert types["DisruptionTarget"] == "True"
    assert cluster.read().status["reason"] == "Preempted"


@pytest.mark.parametrize("terminal", [SUCCEEDED, PREEMPTED], ids=lambda s: s.phase)
@pytest.mark.parametrize("status", [PENDING, RUNNING, SUCCEEDED, PREEMPTED], ids=lambda s: s.phase)
def test_a_terminal_phase_is_sticky(terminal: PodStatus, status: PodStatus) -> None:
    cluster = Released()
    cluster.show(terminal)
    assert cluster.show(status) is None


def test_a_stale_reading_cannot_overwrite_what_somebody_else_ended() -> None:
    cluster = Released()
    stale = cluster.read()
    cluster.api.patch_pod_status("team", "web-0", {"status": {"phase": "Failed"}})
    patch = status_patch(stale, RUNNING, NOW)
    assert patch is not None
    with pytest.raises(ConflictError):
        cluster.api.patch_pod_status("team", "web-0", patch)


def test_a_gated_pod_that_nobody_deletes_is_left_alone() -> None:
    cluster = Cluster()
    assert status_patch(cluster.add(pod_object()), RUNNING, NOW) is None


def test_the_conditions_of_others_survive() -> None:
    cluster = Released()
    foreign = {"type": "example.com/checked", "status": "True", "lastTransitionTime": "2026-11-30T11:00:00Z"}
    cluster.api.patch_pod_status("team", "web-0", {"status": {"conditions": [foreign]}})
    cluster.show(RUNNING)
    assert cluster.condition("example.com/checked")["lastTransitionTime"] == "2026-11-30T11:00:00Z"
    assert cluster.read().condition("PodScheduled") is not None


def test_a_transition_time_moves_with_its_status_only() -> None:
    cluster = Released()
    cluster.show(PENDING)
    cluster.clock.advance(MINUTE)
    cluster.show(RUNNING)
    assert cluster.condition("Initialized")["lastTransitionTime"] == "2026-11-30T12:00:00Z"
    assert cluster.condition("Ready")["lastTransitionTime"] == "2026-11-30T12:01:00Z"
    assert "reason" not in cluster.condition("Ready")


def test_after_a_lapse_of_the_node_the_pod_is_made_ready_again() -> None:
    cluster = Released()
    cluster.show(RUNNING)
    lapsed = {"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-30T12:00:30Z"}
    cluster.api.patch_pod_status("team", "web-0", {"status": {"conditions": [lapsed]}})
    cluster.clock.advance(MINUTE)
    patch = cluster.show(RUNNING)
    assert patch is not None
    assert [c["type"] for c in patch["status"]["conditions"]] == ["Ready"]
    assert cluster.condition("Ready")["lastTransitionTime"] == "2026-11-30T12:01:00Z"


def test_ready_is_the_and_of_the_readiness_gates() -> None:
    cluster = Released(readinessGates=[{"conditionType": "example.com/lb"}])
    cluster.show(RUNNING)
    assert cluster.condition("ContainersReady")["status"] == "True"
    assert (cluster.condition("Ready")["status"], cluster.condition("Ready")["reason"]) == (
        "False",
        "ReadinessGatesNotReady",
    )
    cluster.api.patch_pod_status(
        "team", "web-0", {"status": {"conditions": [{"type": "example.com/lb", "status": "True"}]}}
    )
    cluster.show(RUNNING)
    assert cluster.condition("Ready")["status"] == "True"


def test_the_generation_acted_on_is_told_where_the_server_keeps_it() -> None:
    cluster = Released()
    patch = cluster.show(RUNNING)
    assert patch is not None
    assert patch["status"]["observedGeneration"] == cluster.read().generation
    behind = copy.deepcopy(cluster.read().object)
    behind["metadata"]["generation"] += 1
    behind["status"]["observedGeneration"] = behind["metadata"]["generation"] - 1
    again = status_patch(Pod.from_object(behind), RUNNING, NOW)
    assert again is not None
    assert again["status"] == {"observedGeneration": behind["metadata"]["generation"]}


def test_a_server_without_observed_generation_is_not_written_to_for_ever() -> None:
    cluster = Released()
    cluster.show(RUNNING)
    pruned = copy.deepcopy(cluster.read().object)
    pruned["status"].pop("observedGeneration", None)
    for condition in pruned["status"]["conditions"]:
        condition.pop("observedGeneration", None)
    assert status_patch(Pod.from_object(pruned), RUNNING, NOW) is None


def test_restarts_shown_by_somebody_else_are_kept() -> None:
    cluster = Released(restartPolicy="Always")
    shown = {
        "name": "main",
        "image": "x",
        "imageID": "sha256:1",
        "ready": False,
        "restartCount": 2,
        "state": {"waiting": {}},
    }
    cluster.api.patch_pod_status("team", "web-0", {"status": {"containerStatuses": [shown]}})
    cluster.show(RUNNING)
    (after,) = cluster.read().status["containerStatuses"]
    assert (after["restartCount"], after["imageID"], after["ready"]) == (2, "sha256:1", True)


def test_one_condition_is_set_once_and_again_when_its_words_change() -> None:
    cluster = Cluster()
    cluster.add(pod_object())

    def say(message: str) -> Object | None:
        patch = condition_patch(cluster.read(), CONDITION_RELEASED, "False", "Deferred", message, cluster.clock.now())
        if patch is not None:
            cluster.api.patch_pod_status("team", "web-0", patch)
        return patch

    assert say("no capacity") is not None
    cluster.clock.advance(MINUTE)
    assert say("no capacity") is None
    assert say("over budget") is not None
    found = cluster.read().condition(CONDITION_RELEASED)
    assert found is not None
    assert (found["message"], found["lastTransitionTime"]) == ("over budget", "2026-11-30T12:00:00Z")
    assert cluster.read().condition("PodScheduled") is not None


def test_conditions_are_told_apart_by_type() -> None:
    assert Condition("Ready", "True") != Condition("Initialized", "True")
    assert (RUNNING.terminal, SUCCEEDED.terminal) == (False, True)


def test_the_released_condition_turns_true_with_the_first_status() -> None:
    cluster = Cluster()
    found = cluster.add(pod_object())
    said = condition_patch(found, CONDITION_RELEASED, "False", "Provisioning", "creating", NOW)
    assert said is not None
    cluster.api.patch_pod_status("team", "web-0", said)
    cluster.api.patch_pod("team", "web-0", release_patch(cluster.read(), provider="runpod", annotations={}))
    patch = status_patch(cluster.read(), PENDING, NOW)
    assert patch is not None
    cluster.api.patch_pod_status("team", "web-0", patch)
    released = cluster.read().condition(CONDITION_RELEASED)
    assert released is not None
    assert (released["status"], released["reason"]) == ("True", "Released")
    assert "message" not in released
