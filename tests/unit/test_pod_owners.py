"""Owners see in a Pod's status what a kubelet would write: they complete, fail and replace for the right reason."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support.pod_controllers import TRACKED, Deployment, Job, StatefulSet, phase
from tests.support.world import World, pool_object


def _world() -> World:
    return World(pool=pool_object(capacityTypes=["Spot", "OnDemand"]))


def _machine(world: World, pod: str) -> str:
    found = world.claim(pod).instance_id
    assert found is not None
    return found


def test_a_deployment_becomes_available_after_its_min_ready_seconds() -> None:
    world = _world()
    deployment = Deployment(world, 2, min_ready=timedelta(seconds=90))
    deployment.run(1)
    assert deployment.available() == 0
    deployment.run(2)
    assert deployment.available() == 2
    assert len(world.billed()) == 2


def test_a_deployment_replaces_the_pod_whose_machine_was_taken_and_only_that_one() -> None:
    world = _world()
    deployment = Deployment(world, 2)
    deployment.run(2)
    kept, taken = sorted(world.billed())
    world.simulated.console.interrupt(taken, notice=timedelta(0))
    deployment.run(4)
    assert deployment.available() == 2
    assert [phase(pod) for pod in deployment.pods()].count("Failed") == 1
    assert kept in world.billed()
    assert taken not in world.billed()
    assert len(world.billed()) == 2


def test_a_deployment_is_available_again_after_the_node_lapsed_without_a_new_machine() -> None:
    world = _world()
    deployment = Deployment(world, 2)
    deployment.run(2)
    before = sorted(world.billed())
    world.emulator.controllers.lapse("nebula-simulated")
    assert deployment.available() == 0
    deployment.run(1)
    assert deployment.available() == 2
    assert sorted(world.billed()) == before


def test_a_job_completes_when_its_container_ends_with_0_and_its_pod_is_let_go() -> None:
    world = _world()
    job = Job(world)
    job.run(2)
    world.simulated.console.exit(_machine(world, "fine-tune-0"), 0)
    job.run(3)
    assert (job.result, job.succeeded, job.failed) == ("Complete", 1, 0)
    assert world.billed() == []
    assert all(TRACKED not in pod["metadata"].get("finalizers", []) for pod in job.pods())


@pytest.mark.parametrize(
    ("code", "fail_on", "result", "failed"),
    [(3, (3,), "PodFailurePolicy", 1), (3, (4,), "BackoffLimitExceeded", 2)],
)
def test_a_job_fails_by_its_exit_code_or_by_its_limit(
    code: int, fail_on: tuple[int, ...], result: str, failed: int
) -> None:
    world = _world()
    job = Job(world, backoff_limit=1, fail_on=fail_on)
    for attempt in range(failed):
        job.run(2)
        world.simulated.console.exit(_machine(world, f"fine-tune-{attempt}"), code)
        job.run(3)
    assert (job.result, job.failed, job.succeeded) == (result, failed, 0)
    assert world.billed() == []


def test_a_job_does_not_count_a_reclaimed_machine_and_completes_on_the_next() -> None:
    world = _world()
    job = Job(world)
    job.run(2)
    world.simulated.console.interrupt(_machine(world, "fine-tune-0"))
    job.run(4)
    assert (job.result, job.failed) == ("", 0)
    world.simulated.console.exit(_machine(world, "fine-tune-1"), 0)
    job.run(3)
    assert (job.result, job.failed) == ("Complete", 0)


def test_a_job_s_deleted_pods_reach_a_terminal_phase_and_do_not_hang_on_their_finalizer() -> None:
    world = _world()
    job = Job(world)
    job.run(2)
    job.result = "Suspended"
    job.delete_pods()
    job.run(3)
    assert job.pods() == []
    assert world.billed() == []


def test_a_stateful_set_goes_in_order() -> None:
    world = _world()
    replicas = StatefulSet(world, 3)
    seen = []
    for _ in range(6):
        replicas.run(1)
        seen.append(replicas.ready())
    names = ["indexer-0", "indexer-1", "indexer-2"]
    assert all(ready == names[: len(ready)] for ready in seen)
    assert seen[-1] == names
    assert len(world.billed()) == 3


def test_a_stateful_set_s_lost_replica_comes_back_under_its_name_on_a_machine_of_its_own() -> None:
    world = _world()
    replicas = StatefulSet(world, 2)
    replicas.run(4)
    lost, kept = _machine(world, "indexer-0"), _machine(world, "indexer-1")
    claim = world.claim("indexer-0").claim_id
    world.simulated.console.interrupt(lost, notice=timedelta(0))
    replicas.run(6)
    assert replicas.ready() == ["indexer-0", "indexer-1"]
    assert world.claim("indexer-0").claim_id != claim
    assert _machine(world, "indexer-1") == kept
    assert _machine(world, "indexer-0") not in (lost, kept)
    assert sorted(world.billed()) == sorted([_machine(world, "indexer-0"), kept])


def test_pods_whose_node_was_deleted_end_and_so_do_their_machines() -> None:
    world = _world()
    deployment = Deployment(world, 2)
    deployment.run(2)
    before = set(world.billed())
    world.api.delete_node("nebula-simulated")
    world.emulator.controllers.collect_garbage()
    deployment.run(4)
    assert world.api.get_node("nebula-simulated") is not None
    assert deployment.available() == 2
    assert not before & set(world.billed())
    assert len(world.billed()) == 2
