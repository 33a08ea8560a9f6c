"""A Pod's fields through the real workflows: times, ends, lapses, edits and everything refused."""

from __future__ import annotations

from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from nebula.domain.claim import Phase, TerminationReason
from nebula.kubernetes.names import CONDITION_RELEASED
from nebula.kubernetes.pod import Pod

from local.kubernetes.resources import CONFIG_MAPS
from tests.support.pods import events_of
from tests.support.world import World, pod_object, running, until_true

MAIN = pod_object()["spec"]["containers"][0]


def released(**spec: Any) -> World:
    world = World()
    world.create_pod(**spec)
    world.pump()
    world.tick()
    assert running(world.pod())
    return world


def view(world: World) -> Pod:
    found = world.pod()
    assert found is not None
    return Pod.from_object(found)


def end(world: World, exit_code: int | None) -> None:
    (machine,) = world.billed()
    world.simulated.console.exit(machine, exit_code)
    world.tick()


@pytest.mark.parametrize(
    ("policy", "exit_code", "phase"),
    [("Never", 0, "Succeeded"), ("Never", 2, "Failed"), ("OnFailure", 0, "Succeeded"), ("Always", 0, "Failed")],
)
def test_x3_an_exit_ends_the_pod_and_then_the_instance(policy: str, exit_code: int, phase: str) -> None:
    world = released(restartPolicy=policy)
    end(world, exit_code)
    pod = view(world)
    assert pod.phase == phase
    assert pod.status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == exit_code
    world.run(2)
    assert world.billed() == []
    assert world.claim().phase is Phase.TERMINATED
    assert world.claim().termination_reason is TerminationReason.POD_FINISHED
    assert view(world).phase == phase


def test_a_pod_past_its_active_deadline_fails_and_its_instance_ends() -> None:
    world = released(restartPolicy="Never", activeDeadlineSeconds=90)
    world.tick(after=timedelta(seconds=60))
    assert running(world.pod())
    world.tick(after=timedelta(seconds=60))
    assert (view(world).phase, view(world).status["reason"]) == ("Failed", "DeadlineExceeded")
    world.run(2)
    assert world.billed() == []
    assert view(world).status["reason"] == "DeadlineExceeded"


def test_a_lapse_of_the_node_is_repaired_with_its_pods() -> None:
    world = released()
    world.emulator.controllers.lapse("nebula-simulated")
    assert not running(world.pod())
    world.tick()
    assert running(world.pod())
    node = world.api.get_node("nebula-simulated")
    assert node is not None
    assert {c["type"]: c["status"] for c in node["status"]["conditions"]}["Ready"] == "True"


def test_an_unlimited_toleration_keeps_the_pod_through_a_long_lapse() -> None:
    world = released()
    limits = [t.get("tolerationSeconds") for t in view(world).spec["tolerations"]]
    assert limits == [None] * len(limits)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"hostNetwork": True}, "spec.hostNetwork"),
        ({"volumes": [{"name": "data", "emptyDir": {}}]}, "spec.volumes[data]"),
        ({"containers": [{**MAIN, "stdin": True}]}, "stdin"),
        ({"containers": [MAIN, {**MAIN, "name": "two"}]}, "one container per Pod"),
        ({"labels": {"nebula.inftyai.com/accelerator-type": ""}}, "nvidia.com/gpu=1"),
    ],
)
def test_a_pod_that_cannot_be_honoured_is_told_so_and_nothing_is_bought(spec: dict[str, Any], words: str) -> None:
    world = World()
    world.create_pod(**spec)
    world.pump()
    world.run(2)
    condition = view(world).condition(CONDITION_RELEASED)
    assert condition is not None
    assert condition["status"] == "False"
    assert words in condition["message"]
    assert view(world).gated
    assert world.billed() == []


def test_f4_a_pod_that_waits_for_a_config_map_goes_on_once_it_is_there_and_can_be_deleted_before() -> None:
    entry = {"name": "MODEL", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "model"}}}
    world = World()
    world.create_pod("waits", containers=[{**MAIN, "env": [entry]}])
    world.create_pod("leaves", containers=[{**MAIN, "env": [entry]}])
    world.pump()
    world.run(1)
    waiting = world.pod("waits")
    assert waiting is not None
    condition = Pod.from_object(waiting).condition(CONDITION_RELEASED)
    assert condition is not None
    assert "settings" in condition["message"]
    assert world.billed() == []
    world.delete_pod("leaves")
    world.pump()
    assert world.pod("leaves") is None
    world.emulator.create(CONFIG_MAPS, "default", {"metadata": {"name": "settings"}, "data": {"model": "m"}})
    world.run(4)
    assert running(world.pod("waits"))
    assert len(world.billed()) == 1


def test_the_node_s_name_is_in_the_environment_that_was_sent() -> None:
    entry = {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    world = World()
    world.create_pod(containers=[{**MAIN, "env": [entry]}])
    world.pump()
    assert world.claim().phase is Phase.RELEASED


def test_what_was_ignored_is_an_event_on_the_pod() -> None:
    world = released(containers=[{**MAIN, "livenessProbe": {"exec": {"command": ["true"]}}}])
    (translated,) = [event for event in events_of(world.emulator, "default") if event["reason"] == "Translated"]
    assert "livenessProbe" in translated["message"]


@pytest.mark.parametrize("times", [1, 30])
def test_the_last_word_reaches_a_pod_that_others_write_to_meanwhile(times: int) -> None:
    world = released(restartPolicy="Never")
    left, counter = iter(range(times)), count()

    def touch(method: str, path: str) -> None:
        if method == "PATCH" and path.endswith("/train/status") and next(left, None) is not None:
            moments = next(counter)
            world.api.patch_pod("default", "train", {"metadata": {"annotations": {"touched": str(moments)}}})

    world.emulator.faults.append(touch)
    (machine,) = world.billed()
    world.simulated.console.interrupt(machine, notice=timedelta(0), linger=timedelta(minutes=5))
    until_true(world, lambda: world.claim().phase is Phase.TERMINATED)
    pod = view(world)
    assert (pod.phase, pod.status["reason"]) == ("Failed", "Preempted")
    assert (pod.condition("DisruptionTarget") or {})["status"] == "True"
