"""The worker killed at the two moments where an instance could be lost, or rented twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from nebula.domain.claim import AttemptOutcome, Phase

from local.stack import Stack
from tests.support.holding_proxy import HoldingProxy
from tests.support.local_stack import World, redirect, wait_until

pytestmark = [pytest.mark.network, pytest.mark.slow]


@dataclass(frozen=True)
class Scene:
    """A stack whose worker reaches RunPod and Kubernetes through proxies."""

    stack: Stack
    world: World
    runpod: HoldingProxy
    kubernetes: HoldingProxy


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    stack = Stack(tmp_path / "stack", divisor=30)
    with ExitStack() as cleanup:
        cleanup.callback(stack.stop)
        stack.start_servers()
        world = World(stack)
        runpod = cleanup.enter_context(HoldingProxy(stack.endpoints.runpod))
        kubernetes = cleanup.enter_context(HoldingProxy(stack.endpoints.kubernetes))
        redirect(stack.directory, runpod=runpod.url, kubernetes=kubernetes.url)
        stack.start_worker()
        world.apply_policies()
        yield Scene(stack, world, runpod, kubernetes)


def _creates(method: str, path: str, _body: bytes) -> bool:
    return (method, path) == ("POST", "/v2/pods")


def test_killed_before_the_create_arrives(scene: Scene) -> None:
    world = scene.world
    hold = scene.runpod.hold_next(_creates, before=True)
    uid = world.create_pod("indexer")
    assert hold.reached.wait(30)
    claim = world.claim(uid)
    assert claim is not None, "the claim is in the ledger before the provider hears of it"
    assert [attempt.number for attempt in claim.attempts] == [1]
    scene.stack.kill_worker()

    scene.stack.start_worker()
    wait_until(lambda: world.phase("indexer") == "Running", "the Pod runs on a new attempt", seconds=90)
    assert world.made() == world.alive() == [world.instance_of("indexer")]
    after = world.claim(uid)
    assert after is not None
    assert [attempt.outcome for attempt in after.attempts] == [AttemptOutcome.NEVER_MADE, AttemptOutcome.CREATED]


def test_killed_after_the_create_and_before_the_id_is_written(scene: Scene) -> None:
    world = scene.world
    hold = scene.runpod.hold_next(_creates, before=False)
    uid = world.create_pod("indexer")
    assert hold.reached.wait(30)
    scene.stack.kill_worker()

    scene.stack.start_worker()
    claim = world.claim(uid)
    assert claim is not None
    assert (claim.phase, claim.instance_id) == (Phase.PROVISIONING, None)
    assert len(world.alive()) == 1

    wait_until(lambda: world.phase("indexer") == "Running", "the Pod runs")
    assert world.made() == world.alive() == [world.instance_of("indexer")]
    after = world.claim(uid)
    assert after is not None
    assert len(after.attempts) == 1


def test_killed_after_the_id_is_written_and_before_the_release(scene: Scene) -> None:
    world = scene.world

    def releases(method: str, path: str, body: bytes) -> bool:
        return (
            method == "PATCH" and path.startswith("/api/v1/namespaces/default/pods/indexer") and b"nodeSelector" in body
        )

    hold = scene.kubernetes.hold_next(releases, before=True)
    uid = world.create_pod("indexer")
    assert hold.reached.wait(30)
    scene.stack.kill_worker()

    scene.stack.start_worker()
    claim = world.claim(uid)
    assert claim is not None
    assert claim.phase is Phase.RELEASING
    assert [claim.instance_id] == world.alive()
    assert world.instance_of("indexer") == ""

    wait_until(lambda: world.phase("indexer") == "Running", "the Pod runs")
    assert world.made() == world.alive() == [world.instance_of("indexer")]


def test_a_pod_deleted_while_no_worker_runs_is_given_back_when_one_does(scene: Scene) -> None:
    world = scene.world
    uid = world.create_pod("indexer")
    wait_until(lambda: world.phase("indexer") == "Running", "the Pod runs")
    scene.stack.kill_worker()
    world.kubectl.delete("Pod", "indexer")

    scene.stack.start_worker()
    wait_until(lambda: not world.alive() and world.phase("indexer") == "", "Pod and instance are gone")

    def closed() -> bool:
        claim = world.claim(uid)
        return claim is not None and claim.phase is Phase.TERMINATED

    wait_until(closed, "the claim is closed")
    assert world.alive() == []
    assert len(world.made()) == 1
