"""Field reports A: what was true when it was decided, and is not when it is done (docs/field-reports.md)."""

from __future__ import annotations

from typing import Any

import pytest
from nebula.domain.claim import AttemptOutcome, Phase, claim_id_for
from nebula.providers.simulated import Call

from local.in_process import DroppedError
from local.runpod.faults import Failure
from tests.support.runpod_installation import RunPodInstallation, with_container
from tests.support.world import CLUSTER, World, running, until_true

PODS_URL = "/api/v1/namespaces/default/pods"


def _taken_by_another(world: World) -> None:
    world.api.patch_pod("default", "train", {"spec": {"schedulingGates": [{"$patch": "replace"}]}})


def _being_deleted(world: World) -> None:
    finalizers = {"metadata": {"finalizers": ["example.com/slow"]}}
    world.api.patch_pod("default", "train", finalizers)
    world.delete_pod(announce=False)


def _gone(world: World) -> None:
    world.delete_pod(announce=False)


@pytest.mark.parametrize("before", [_taken_by_another, _being_deleted, _gone])
@pytest.mark.parametrize("delivered", [0, 1])
def test_a8_the_pod_is_read_again_when_it_is_acted_on(before: Any, delivered: int) -> None:
    """A queue that was slow: by the time of the event the Pod is another's, on its way out, or gone."""
    world = World()
    world.create_pod()
    for _ in range(delivered):
        world.deliver(world.collect().pop(0))
    before(world)
    world.pump()
    world.run(2)
    assert world.simulated.script.counts[Call.PROVISION] == 0
    assert world.billed() == []
    assert list(world.claims.live(CLUSTER)) == []


def test_a9_a_create_whose_claim_began_to_end_ends_what_it_made(ledgers: dict[str, Any]) -> None:
    world = World(**ledgers)

    def meanwhile(call: Call, _subject: object) -> None:
        if call is Call.PROVISION:
            world.simulated.script.before_each(None)
            world.delete_pod()
            world.pump()
            assert world.billed() == []

    world.simulated.script.before_each(meanwhile)
    world.create_pod()
    uid = world.pod()["metadata"]["uid"]  # type: ignore[index]
    world.pump()
    world.run(2)
    assert world.simulated.script.counts[Call.PROVISION] == 1
    assert world.billed() == []
    claim = world.claims.get(claim_id_for(CLUSTER, uid))
    assert claim is not None
    assert claim.phase is Phase.TERMINATED
    assert [attempt.outcome for attempt in claim.attempts] == [AttemptOutcome.GONE]
    assert world.committed() == 0


@pytest.mark.parametrize("lost", [True, False])
def test_a10_a_pod_that_cannot_be_written_loses_no_id_and_is_offered_the_patch_again(lost: bool) -> None:
    world = World()
    failures = iter([True] * 3)

    def fault(method: str, path: str) -> None:
        if method == "PATCH" and path == f"{PODS_URL}/train" and next(failures, False):
            raise DroppedError

    world.emulator.faults.append(fault)
    world.create_pod()
    for _ in range(2):
        world.pump()
        if lost:
            world.queue.clear()
    made = world.claim().instance_id
    assert world.billed() == [made]
    until_true(world, lambda: running(world.pod()))
    pod = world.pod()
    assert pod is not None
    assert pod["metadata"]["annotations"]["nebula.inftyai.com/instance-id"] == made
    assert world.simulated.script.counts[Call.PROVISION] == 1


def test_a11_a_conflict_with_the_namesake_that_still_ends_is_waited_out_and_never_adopted() -> None:
    world = RunPodInstallation()
    world.create_pod()
    world.pump()
    first, former = world.claim(), world.claim().instance_id
    world.simulator.fail(Failure(500, "try again", method="DELETE", path="/v2/pods/.*", times=30))
    force = {"gracePeriodSeconds": "0"}
    assert world.emulator.handle("DELETE", f"{PODS_URL}/train", force, {}, b"").status == 200
    assert world.alive() == [former]

    world.simulator.fail(Failure(409, "a pod of this name is still terminating", method="POST", path="/v2/pods"))
    world.create_pod(**with_container(image="registry.example.com/train:2"))
    world.pump()
    second = world.claim()
    assert second.claim_id != first.claim_id
    assert former not in [attempt.instance_id for attempt in second.attempts]
    until_true(world, lambda: running(world.pod()), minutes=20)
    world.account.faults.clear()
    world.run(3)
    assert world.alive() == [world.claim().instance_id] != [former]
    assert world.calls("POST", "/v2/pods")[-1]["image"] == "registry.example.com/train:2"
