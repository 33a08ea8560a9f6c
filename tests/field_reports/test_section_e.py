"""Field reports E, what RunPod's API does with a request (docs/field-reports.md)."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from nebula.domain.claim import Phase, TerminationReason
from nebula.providers.runpod import RunPodProvider

from local.runpod import schema
from local.runpod.faults import Failure
from tests.support.hanging import Hanging
from tests.support.runpod_installation import RunPodInstallation, condition, events, with_container
from tests.support.scenarios import up
from tests.support.world import running, until_true

GENERIC = "Something went wrong. Please try again later or contact support."
NOT_IN_SCHEMA = "key provided in request body which is not in input schema"
NOT_ENOUGH = "There are not enough free GPUs on the host machine to start this pod."


def broken_contracts(world: RunPodInstallation) -> float:
    """How often RunPod called a request of ours malformed."""
    provider = world.providers.get("runpod")
    assert isinstance(provider, RunPodProvider)
    return float(provider._telemetry.total("ProviderContractBroken"))  # type: ignore[attr-defined]


def test_e1_the_body_has_only_fields_of_the_schema_and_commands_are_arrays() -> None:
    world = RunPodInstallation()
    args = ["-c", "echo 'a b' && exec serve --port $PORT; true", ""]
    world.create_pod(**with_container(command=["/bin/sh"], args=args))
    world.pump()
    body = world.created()
    assert set(body) <= set(schema.CREATE_POD)
    assert (body["entrypoint"], body["cmd"]) == (["/bin/sh"], args)
    assert "dockerArgs" not in body


@pytest.mark.parametrize(
    "text",
    [
        f"dockerArgs: {NOT_IN_SCHEMA}",
        "request validation failed: $.objectMounts: additional property 'objectMounts'",
    ],
)
def test_e1_e2_a_field_that_runpod_refuses_is_a_bug_of_ours_and_not_capacity(text: str) -> None:
    world = RunPodInstallation()
    world.simulator.fail(Failure(400, text, method="POST", path="/v2/pods", times=1000))
    world.create_pod()
    world.pump()
    world.run(3)
    assert broken_contracts(world) > 0
    assert not world.blocks.active("runpod", world.clock.now()), "another Pod's request may be well formed"
    told = condition(world.pod())
    assert told["status"] == "False"
    assert text in told["message"]
    assert "NoCapacity" not in told["message"]


def test_e2_no_key_of_a_request_is_null_however_little_the_pod_says() -> None:
    world = RunPodInstallation()
    world.create_pod()
    world.create_pod("fuller", **with_container(args=["x"], env=[{"name": "EMPTY", "value": ""}]))
    world.pump()
    bodies = world.calls("POST", "/v2/pods")
    assert len(bodies) == 2
    assert not [body for body in bodies if "null" in json.dumps(body)]


@pytest.mark.parametrize("status", [400, 500])
def test_e3_a_text_that_says_nothing_is_tried_a_few_times_and_blocks_no_provider(status: int) -> None:
    world = RunPodInstallation()
    world.simulator.fail(Failure(status, GENERIC, method="POST", path="/v2/pods", times=1000))
    world.create_pod()
    world.pump()
    world.run(9)
    assert 1 <= len(world.calls("POST", "/v2/pods")) <= 6
    assert not world.blocks.active("runpod", world.clock.now())
    claim = world.claim()
    assert claim.phase in (Phase.PENDING, Phase.PROVISIONING)
    assert claim.next_action_at is not None
    assert GENERIC[:30] in condition(world.pod())["message"]
    world.account.faults.clear()
    world.create_pod("other")
    world.pump()
    assert world.claim("other").phase is Phase.RELEASED
    until_true(world, lambda: running(world.pod()), minutes=18)


def test_e4_nothing_is_ever_stopped_or_started_again() -> None:
    """A pod that exits is deleted; the one that the owner makes instead is a new one."""
    world = RunPodInstallation()
    first = up(world)
    world.account.pods[first].force("EXITED", world.clock.now())
    world.run(3)
    pod = world.pod()
    assert pod is not None
    assert pod["status"]["phase"] == "Failed"
    assert world.alive() == []
    world.delete_pod()
    world.run(1)
    second = up(world)
    assert second != first
    changes = {(one.method, one.path) for one in world.account.requests if one.method != "GET"}
    assert changes == {("POST", "/v2/pods"), ("DELETE", f"/v2/pods/{first}")}


def test_e4_the_words_of_a_full_host_are_capacity() -> None:
    world = RunPodInstallation()
    world.simulator.fail(Failure(400, NOT_ENOUGH, method="POST", path="/v2/pods", times=3))
    world.create_pod()
    world.pump()
    (block,) = world.blocks.active("runpod", world.clock.now())
    assert block.reason == "NoCapacity"
    until_true(world, lambda: running(world.pod()), minutes=4)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"command": ["python", "serve.py"]}, {"entrypoint": ["python", "serve.py"], "cmd": []}),
        ({"command": ["serve"], "args": ["-v"]}, {"entrypoint": ["serve"], "cmd": ["-v"]}),
        ({"args": ["-v"]}, {"cmd": ["-v"]}),
        ({}, {}),
    ],
)
def test_e5_a_command_replaces_the_image_s_entrypoint(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    world = RunPodInstallation()
    world.create_pod(**with_container(**fields))
    world.pump()
    body = world.created()
    assert {key: body[key] for key in ("entrypoint", "cmd") if key in body} == expected


def test_e6_a_pod_that_stays_in_provisioning_fails_at_the_start_deadline_and_is_avoided() -> None:
    world = RunPodInstallation(failover={"startDeadline": "3m", "blocklistTTL": "10m"})
    world.account.timing.provisioning = timedelta(days=1)
    world.create_pod()
    world.pump()
    world.run(2)
    pod = world.pod()
    assert pod is not None
    assert pod["status"]["phase"] == "Pending"
    assert len(world.alive()) == 1
    world.run(3)
    pod = world.pod()
    assert pod is not None
    assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "StartDeadline")
    assert world.alive() == []
    assert world.claim().termination_reason is TerminationReason.START_DEADLINE
    assert [event["type"] for event in events(world, "StartDeadline")] == ["Warning"]


def test_e7_a_box_that_ended_while_its_delete_raised_is_an_end_like_any_other() -> None:
    world = RunPodInstallation()
    made = up(world)
    world.simulator.fail(Failure(408, "sandbox timed out", method="DELETE", path="/v2/pods/.*", times=1000))
    world.delete_pod()
    world.pump()
    world.run(2)
    assert world.claim().phase is Phase.TERMINATING
    world.account.terminate(made)
    until_true(world, lambda: world.pod() is None, minutes=3)


def test_e8_a_create_that_never_settles_is_looked_for_by_its_mark_and_adopted() -> None:
    world = RunPodInstallation()
    hanging = Hanging(world, "POST", works=True)
    began = world.clock.now()
    world.create_pod()
    world.pump()
    ((method, path, _),) = hanging.waited
    assert (method, path) == ("POST", "/v2/pods")
    assert world.clock.now() - began < timedelta(seconds=90)
    assert world.alive() == [world.claim().instance_id]
    assert world.claim().phase is Phase.RELEASED


def test_e8_a_box_whose_create_hung_for_a_pod_that_left_meanwhile_does_not_live_on() -> None:
    world = RunPodInstallation()
    hanging = Hanging(world, "POST", "GET", works=True)
    world.create_pod()
    world.pump()
    assert world.claim().instance_id is None
    assert len(world.alive()) == 1
    world.delete_pod()
    hanging.methods.clear()
    world.pump()
    world.run(5)
    assert world.alive() == []
    assert len(world.calls("POST", "/v2/pods")) == 1
