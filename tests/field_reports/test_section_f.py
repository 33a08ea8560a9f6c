"""Field reports, section F: status and lifecycle of a Pod."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from nebula.domain.claim import Claim, Phase, TerminationReason

from local.in_process import DroppedError
from local.runpod.faults import Failure
from tests.support.cloudformation import logical_id, mappings, of_type
from tests.support.handlers import ROOT, about_pod, batch, failed, handler, outcomes
from tests.support.runpod_installation import (
    RunPodInstallation,
    condition,
    events,
    put_login,
    put_secret,
    with_container,
    with_image,
)
from tests.support.simulated import make_slowly
from tests.support.world import CLUSTER, World, pod_object, running, until_true

(MAIN,) = pod_object()["spec"]["containers"]
INIT = {"name": "fetch", "image": "busybox:1"}
SCHEDULE = ROOT / "events/schedule-status.json"


def _preempted(world: World) -> dict[str, Any]:
    """Take the only machine back; the warning as it is on the bus."""
    (machine,) = world.billed()
    return world.simulated.console.interrupt(machine)


def _only_claim(world: World) -> Claim:
    """The only claim, read without the cluster."""
    (claim,) = world.claims.live(CLUSTER)
    return claim


@pytest.mark.parametrize("made", [True, False], ids=["it exists all the same", "nothing was made"])
def test_f1_a_create_that_answers_504_is_looked_up_and_tried_again(made: bool) -> None:
    world = RunPodInstallation()
    world.simulator.fail(
        Failure(504, raw="<html>504 Gateway Time-out</html>", path="/v2/pods", method="POST", after=made)
    )
    world.create_pod()
    world.pump()
    assert world.claim().phase is (Phase.RELEASED if made else Phase.PROVISIONING)
    until_true(world, lambda: running(world.pod()), minutes=8)
    assert len(world.alive()) == 1
    assert len(world.calls("POST", "/v2/pods")) == (1 if made else 2)


def test_f1_504_for_ever_ends_the_tries_there_and_the_pod_says_so_instead_of_pending_silently() -> None:
    world = RunPodInstallation()
    world.simulator.fail(Failure(504, raw="gateway", path="/v2/pods", method="POST", times=1000))
    world.create_pod()
    world.pump()
    said = "runpod did not answer 3 times; nothing was created"
    until_true(world, lambda: said in condition(world.pod())["message"], minutes=20)
    assert world.claim().phase is Phase.PENDING
    assert world.claim().next_action_at is not None
    assert world.alive() == []


@pytest.mark.parametrize("order", [1, -1])
def test_f2_a_pod_of_two_containers_is_refused_so_that_no_success_can_hide_a_failure(order: int) -> None:
    world = World()
    world.create_pod(containers=[MAIN, {**MAIN, "name": "second"}][::order])
    world.pump()
    world.run(1)
    shown = condition(world.pod())["message"]
    assert "one container per Pod" in shown
    assert "main" in shown
    assert "second" in shown
    assert world.billed() == []


def test_f3_init_containers_are_refused_so_no_running_pod_waits_for_them() -> None:
    world = World()
    world.create_pod(initContainers=[INIT])
    world.pump()
    world.run(1)
    assert "spec.initContainers[fetch]" in condition(world.pod())["message"]
    assert world.billed() == []


def test_f3_a_running_pod_is_shown_as_initialized() -> None:
    world = World()
    world.create_pod()
    world.pump()
    world.tick()
    assert running(world.pod())
    assert condition(world.pod(), "Initialized")["status"] == "True"
    pod = world.pod()
    assert pod is not None
    assert "initContainerStatuses" not in pod["status"]


def test_f4_a_pod_that_waits_for_a_secret_can_be_deleted() -> None:
    world = World()
    entry = {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "not-there", "key": "token"}}}
    world.create_pod(**with_container(env=[entry]))
    world.pump()
    world.run(1)
    assert "Secret not-there" in condition(world.pod())["message"]
    claim = world.claim()
    world.delete_pod()
    world.pump()
    world.tick()
    assert world.pod() is None
    ended = world.claims.get(claim.claim_id)
    assert ended is not None
    assert ended.phase is Phase.TERMINATED
    assert world.billed() == []


def test_f5_a_preemption_is_a_disruption_in_the_very_patch_that_fails_the_pod() -> None:
    world = World()
    patches: list[dict[str, Any]] = []
    world.create_pod(restartPolicy="Never")
    world.pump()
    world.tick()
    keep = world.api.patch_pod_status

    def noting(namespace: str, name: str, patch: dict[str, Any]) -> Any:
        patches.append(patch)
        return keep(namespace, name, patch)

    world.api.patch_pod_status = noting  # type: ignore[method-assign,assignment]
    handler("provisioning", world)(batch(_preempted(world)))
    (failing,) = [patch for patch in patches if patch["status"].get("phase") == "Failed"]
    kinds = {item["type"]: (item["status"], item.get("reason")) for item in failing["status"]["conditions"]}
    assert kinds["DisruptionTarget"] == ("True", "SpotReclaimed")


@pytest.mark.parametrize("warned", [True, False], ids=["told on the bus", "seen in the listing"])
def test_f6_the_reason_of_a_preemption_outlives_its_pod_in_the_ledger_and_in_an_event(warned: bool) -> None:
    world = World()
    world.create_pod()
    world.pump()
    world.tick()
    claim = world.claim()
    (machine,) = world.billed()
    warning = world.simulated.console.interrupt(machine, notice=timedelta(0))
    if warned:
        handler("provisioning", world)(batch(warning))
    world.tick()
    world.delete_pod()
    world.pump()
    world.run(2)
    assert world.pod() is None
    ended = world.claims.get(claim.claim_id)
    assert ended is not None
    assert (ended.phase, ended.termination_reason) == (Phase.TERMINATED, TerminationReason.PREEMPTED)
    assert machine in ended.message
    (told,) = events(world, "Preempted")
    assert machine in told["message"]


def test_f7_secrets_are_read_by_name_and_never_listed_or_watched() -> None:
    world = RunPodInstallation()
    put_login(world)
    put_secret(world, "env", {"type": "Opaque", "data": {"TOKEN": "dA=="}})
    containers = with_container(envFrom=[{"secretRef": {"name": "env"}}])["containers"]
    world.create_pod(**{**with_image("registry.example.com/team/train:1", "login"), "containers": containers})
    world.pump()
    world.run(3)
    assert running(world.pod())
    verbs = {verb for verb, resource in world.emulator.calls if resource == "secrets"}
    assert verbs == {"get"}


def test_f8_an_interruption_has_a_queue_and_a_mapping_without_creates() -> None:
    (target,) = of_type("AWS::Events::Rule")["InterruptionsToReclaim"]["Targets"]
    assert logical_id(target["Arn"]) == "ReclaimQueue"
    created = {
        logical_id(t["Arn"])
        for name, rule in of_type("AWS::Events::Rule").items()
        if name.endswith("ToCreate")
        for t in rule["Targets"]
    }
    assert created == {"CreateQueue"}
    assert {"CreateQueue", "ReclaimQueue"} == set(mappings("provisioning"))


def test_f8_a_warning_is_on_its_pod_before_any_of_fifty_waiting_creates_and_before_the_next_tick() -> None:
    world = World()
    world.create_pod("spot")
    world.pump()
    world.tick()
    for number in range(50):
        world.create_pod(f"waiting-{number}")
    world.collect()
    before = world.clock.now()
    answer = handler("provisioning", world)(batch(_preempted(world)))
    assert failed(answer) == []
    assert world.clock.now() == before
    assert condition(world.pod("spot"), "DisruptionTarget")["status"] == "True"
    pod = world.pod("spot")
    assert pod is not None
    assert pod["status"]["phase"] == "Failed"


def test_f8_a_warning_for_a_machine_whose_pod_still_waits_finds_another_at_once_behind_the_gate() -> None:
    world = World()
    make_slowly(world.simulated, boot=timedelta(seconds=50))
    world.create_pod()
    world.pump()
    (first,) = world.billed()
    assert world.claim().phase is Phase.PROVISIONED
    handler("provisioning", world)(batch(_preempted(world)))
    assert world.claim().phase is Phase.WITHDRAWING
    until_true(world, lambda: running(world.pod()), minutes=6)
    assert world.billed() == [world.claim().instance_id]
    assert world.claim().instance_id != first


def test_f8_a_warning_while_the_cluster_is_silent_reaches_its_pod_with_the_next_tick() -> None:
    world = World()
    world.create_pod()
    world.pump()
    world.tick()

    def silent(method: str, path: str) -> None:
        raise DroppedError

    world.emulator.faults.append(silent)
    assert failed(handler("provisioning", world)(batch(_preempted(world)))) == []
    assert _only_claim(world).termination_reason is TerminationReason.PREEMPTED
    world.emulator.faults.clear()
    world.tick()
    assert condition(world.pod(), "DisruptionTarget")["status"] == "True"


def test_f9_every_event_leaves_one_line_with_its_outcome() -> None:
    world = World()
    placement, provisioning, polling = (handler(f, world) for f in ("placement", "provisioning", "status_polling"))
    pod = world.create_pod(announce=False)
    placement(batch(about_pod("Pod Gated", pod)))
    placement(batch(about_pod("Pod Gated", pod)))
    for envelope in world.publisher.take():
        provisioning(batch(envelope))
    polling(json.loads(SCHEDULE.read_text()))
    gone = {**pod, "metadata": {**pod["metadata"], "uid": "another"}}
    provisioning(batch(about_pod("Pod Deleted", gone)))
    assert [kind for kind, _ in outcomes(world)] == [
        "Pod Gated",
        "Pod Gated",
        "Claim Placed",
        "Status Poll Scheduled",
        "Pod Deleted",
    ]
    said = dict(outcomes(world))
    about = [fields for _, message, fields in world.telemetry.lines if message == "event handled"]
    assert [line.get("claim_id") for line in about].count(world.claim().claim_id) == 1
    assert {line.get("uid") for line in about} == {pod["metadata"]["uid"], "another", None}
    assert said["Pod Gated"].startswith("Placed")
    assert said["Claim Placed"].startswith("Released")
    assert said["Status Poll Scheduled"] == "1 claims looked at, 0 due"
    assert said["Pod Deleted"] == "no claim"
