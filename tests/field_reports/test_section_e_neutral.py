"""Field reports E, quirks of other providers by the rule that they have in common (docs/field-reports.md)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from nebula.domain.claim import Phase, TerminationReason
from nebula.events.envelope import parse_envelope
from nebula.providers.runpod.translate import MAX_BODY_BYTES
from nebula.providers.simulated import Behaviour, Call, SimulatedProvider
from nebula.workflows.interruption import interrupted

from tests.support.runpod_installation import RunPodInstallation, condition, events, with_container
from tests.support.scenarios import up
from tests.support.simulated import QUEUES
from tests.support.tripwire import wired
from tests.support.world import World, pool_object, running, until_true


@pytest.mark.parametrize("code", [124, 137, 255])
def test_e9_no_cause_is_read_out_of_an_exit_code(code: int) -> None:
    world = World()
    made = up(world, restartPolicy="Never")
    world.simulated.console.exit(made, code)
    world.tick()
    pod = world.pod()
    assert pod is not None
    assert pod["status"]["phase"] == "Failed"
    ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (code, "Error")
    assert pod["status"].get("reason") not in ("Preempted", "OOMKilled", "DeadlineExceeded")
    assert condition(pod, "DisruptionTarget") == {}
    assert world.claim().termination_reason is TerminationReason.POD_FINISHED
    assert not world.blocks.active("simulated", world.clock.now())


def test_e9_a_time_limit_is_told_apart_by_our_own_clock() -> None:
    world = World()
    up(world, restartPolicy="Never", activeDeadlineSeconds=60)
    world.tick(after=timedelta(seconds=80))
    pod = world.pod()
    assert pod is not None
    assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "DeadlineExceeded")


def test_e10_a_lifetime_is_kept_to_the_second_and_never_ends_early() -> None:
    """Nothing of ``activeDeadlineSeconds`` is sent to a provider, so nothing of it is cut off or clamped."""
    world = RunPodInstallation()
    up(world, activeDeadlineSeconds=90_061)
    assert not [name for name in world.created() if "deadline" in name.lower() or "timeout" in name.lower()]
    pod = world.pod()
    assert pod is not None
    world.clock.advance(timedelta(seconds=90_000))
    world.tick(after=timedelta(seconds=20))
    assert running(world.pod())
    world.tick(after=timedelta(seconds=60))
    pod = world.pod()
    assert pod is not None
    assert pod["status"]["reason"] == "DeadlineExceeded"
    world.run(2)
    assert world.alive() == []


def _environment(kilobytes: int) -> dict[str, Any]:
    entries = [{"name": f"VALUE_{number}", "value": "s3cr3t" * 171} for number in range(kilobytes)]
    return with_container(env=entries)


def test_e11_twenty_kilobytes_of_environment_are_no_trouble() -> None:
    world = RunPodInstallation()
    world.create_pod(**_environment(20))
    world.pump()
    assert world.claim().phase is Phase.RELEASED
    assert len(world.created()["env"]) == 23


def test_e11_a_request_over_the_limit_is_refused_before_the_call_and_for_good() -> None:
    world = RunPodInstallation()
    world.create_pod(**_environment(120))
    world.pump()
    world.run(10)
    assert world.calls("POST", "/v2/pods") == []
    told = condition(world.pod())
    assert told["status"] == "False"
    assert f"RunPod takes {MAX_BODY_BYTES}" in told["message"]
    assert "env VALUE_0" in told["message"]
    assert "s3cr3t" not in str(world.pod()["status"]) + str(events(world, "ProvisionRejected"))  # type: ignore[index]
    assert world.claim().phase is Phase.PENDING
    assert world.claim().next_action_at is None, "only a change of the Pod can help"


def test_e12_boots_that_fail_are_replaced_and_no_pod_is_lost() -> None:
    """A fifth of the machines dies while it boots, another fifth never runs: their Pods wait for one that does."""
    world = World(pool=pool_object("queueing", "simulated"))
    queueing = SimulatedProvider(
        world.clock, name="queueing", capabilities=QUEUES, behaviour=Behaviour(boot=timedelta(hours=9))
    )
    world.providers._providers["queueing"] = queueing
    world.providers.keys["queueing"] = "key-1"
    names = [f"train-{number}" for number in range(10)]
    for name in names:
        world.create_pod(name)
    world.pump()
    machines = [str(world.claim(name).instance_id) for name in names]
    for machine in machines[:2]:
        queueing.console.fail(machine, "cloud-init: scripts-user failed")
    for machine in machines[4:]:
        queueing.console.run_now(machine)
    until_true(world, lambda: all(running(world.pod(name)) for name in names), minutes=9)
    assert {str(world.claim(name).instance_id) for name in names} == {*world.billed(), *world.billed(queueing)}
    assert sorted(world.billed(queueing)) == sorted(machines[4:])
    assert len(world.billed()) == 4


def test_e13_an_interruption_of_an_instance_that_is_not_ours_has_no_effect_at_all() -> None:
    """Another installation in the account has its own queue; its warning reaches ours all the same."""
    ours, theirs = World(), World()
    made = up(ours)
    up(theirs)
    other = up(theirs, "second")
    warning = parse_envelope(theirs.simulated.console.interrupt(other))
    wire = wired(ours)
    writes = ours.claims.writes
    assert interrupted(ours.services("provisioning"), warning) is None
    assert wire.log == []
    assert ours.claims.writes == writes
    assert not ours.blocks.active("simulated", ours.clock.now())
    assert ours.billed() == [made]
    claim = interrupted(theirs.services("provisioning"), warning)
    assert claim is not None
    assert claim.termination_reason is TerminationReason.PREEMPTED
    assert ours.simulated.script.counts[Call.TERMINATE] == 0
