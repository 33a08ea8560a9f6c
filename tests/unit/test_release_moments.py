"""What may happen to a Pod in the very moment in which it is released."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nebula.domain.claim import Phase, TerminationReason, claim_id_for
from nebula.domain.instance import Instance
from nebula.providers.base import ProvisionRequest

from local.kubernetes.resources import PODS
from tests.support.world import CLUSTER, World, pod_object, running

POD = "/api/v1/namespaces/default/pods/train"


def _just_before_the_release(world: World, act: Callable[[], None]) -> None:
    """Do something once, when the patch that releases the Pod reaches the server."""
    done: list[str] = []

    def look(method: str, path: str) -> None:
        if method == "PATCH" and path == POD and not done:
            done.append(path)
            act()

    world.emulator.faults.append(look)


def _delete(world: World) -> None:
    world.emulator.handle("DELETE", POD, {}, {})


def _gives_its_machine_back(world: World, pod: dict[str, Any]) -> None:
    world.pump()
    world.run(3)
    claim = world.claims.get(claim_id_for(CLUSTER, pod["metadata"]["uid"]))
    assert claim is not None
    assert claim.phase is Phase.TERMINATED
    assert world.billed() == []


def test_a_pod_that_is_deleted_then_gives_its_machine_back() -> None:
    world = World()
    pod = world.create_pod()
    _just_before_the_release(world, lambda: _delete(world))
    _gives_its_machine_back(world, pod)


def test_a_pod_made_anew_under_the_name_then_is_not_released_with_the_old_ones_machine() -> None:
    world = World()
    first = world.create_pod()

    def renew() -> None:
        _delete(world)
        world.emulator.create(PODS, "default", pod_object())

    _just_before_the_release(world, renew)
    world.pump()
    world.run(4)
    old = world.claims.get(claim_id_for(CLUSTER, first["metadata"]["uid"]))
    assert old is not None
    assert old.phase is Phase.TERMINATED
    assert running(world.pod())
    assert world.billed() == [world.claim().instance_id]
    assert world.claim().instance_id != old.instance_id


def test_a_pod_that_begins_to_be_deleted_behind_a_finalizer_then_is_ended_and_let_go() -> None:
    world = World()
    pod = pod_object()
    pod["metadata"]["finalizers"] = ["batch.kubernetes.io/job-tracking"]
    world.emulator.create(PODS, "default", pod)
    _just_before_the_release(world, lambda: _delete(world))
    world.run(4)
    found = world.pod()
    assert found is not None
    assert found["status"]["phase"] == "Failed"
    assert found["metadata"]["finalizers"] == ["batch.kubernetes.io/job-tracking"]
    assert world.billed() == []


def test_a_label_written_then_is_read_again_and_the_pod_released() -> None:
    world = World()
    world.create_pod()

    def label() -> None:
        world.api.patch_pod("default", "train", {"metadata": {"labels": {"team": "a"}}})

    _just_before_the_release(world, label)
    world.pump()
    world.minute()
    pod = world.pod()
    assert running(pod)
    assert pod is not None
    assert pod["metadata"]["labels"]["team"] == "a"
    assert len(world.billed()) == 1


def _during_the_create(world: World, act: Callable[[], None]) -> None:
    """Do something while the provider makes the instance, behind the checks and before the release."""
    made = world.simulated.provision

    def provision(request: ProvisionRequest) -> Instance:
        act()
        return made(request)

    world.simulated.provision = provision  # type: ignore[method-assign]


def test_a_pod_that_nobody_touched_during_the_create_is_not_read_again_for_its_release() -> None:
    world = World()
    world.create_pod()
    reads: list[int] = []
    _during_the_create(world, lambda: reads.append(world.emulator.calls["get", "pods"]))
    world.pump()
    assert world.claim().phase is Phase.RELEASED
    assert world.emulator.calls["get", "pods"] == reads[0]


def test_a_pod_that_is_deleted_during_the_create_gives_its_machine_back() -> None:
    world = World()
    pod = world.create_pod()
    _during_the_create(world, lambda: _delete(world))
    _gives_its_machine_back(world, pod)


def test_a_pod_made_anew_during_the_create_is_not_released_with_the_old_ones_machine() -> None:
    world = World()
    first = world.create_pod()
    renewed: list[str] = []

    def renew() -> None:
        if not renewed:
            renewed.append("once")
            _delete(world)
            world.emulator.create(PODS, "default", pod_object())

    _during_the_create(world, renew)
    world.pump()
    world.run(4)
    old = world.claims.get(claim_id_for(CLUSTER, first["metadata"]["uid"]))
    assert old is not None
    assert (old.phase, old.termination_reason) == (Phase.TERMINATED, TerminationReason.POD_DELETED)
    assert running(world.pod())
    assert world.billed() == [world.claim().instance_id]


def test_a_pod_whose_image_changes_during_the_create_is_decided_anew() -> None:
    world = World()
    world.create_pod()
    changed: list[str] = []

    def change() -> None:
        if not changed:
            changed.append("once")
            body = b'{"spec": {"containers": [{"name": "main", "image": "other:1"}]}}'
            headers = {"Content-Type": "application/strategic-merge-patch+json"}
            assert world.emulator.handle("PATCH", POD, {}, headers, body).status == 200

    _during_the_create(world, change)
    world.pump()
    world.run(3)
    claim = world.claim()
    assert claim.phase is Phase.RELEASED
    assert len(claim.attempts) == 2
    assert world.billed() == [claim.instance_id]
