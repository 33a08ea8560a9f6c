"""The real RunPod provider behind the whole control plane: the main path, and a fifth of all calls failing."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from nebula.domain.claim import Phase
from nebula.http import HttpClient, Limits
from nebula.observability import MemoryTelemetry
from nebula.providers.runpod import RunPodProvider, build
from pydantic import SecretStr

from local.runpod import Simulator
from local.runpod.adapter import BASE_URL, client_session
from local.runpod.faults import Chaos, Failure
from tests.support.runpod import NO_CAPACITY
from tests.support.world import CLUSTER, INSTALLATION, World, pool_object, running

KEY = "rpa_test-key"
PODS = 200


def _world() -> tuple[World, Simulator]:
    world = World(pool=pool_object("runpod", strategy="LowestPrice"))
    simulator = Simulator(world.clock.now)
    provider = _provider(world, simulator)
    world.providers._providers = {"runpod": provider}
    world.providers.keys = {"runpod": "key-1"}
    return world, simulator


def _provider(world: World, simulator: Simulator) -> RunPodProvider:
    def elapsed() -> float:
        return world.clock.now().timestamp()

    http = HttpClient(client_session(simulator), limits=Limits(), sleep=lambda _: None, monotonic=elapsed)
    telemetry = MemoryTelemetry()
    return build(api_key=SecretStr(KEY), base_url=BASE_URL, clock=world.clock, telemetry=telemetry, http=http)


def _alive(simulator: Simulator) -> list[dict[str, object]]:
    state = json.loads(simulator.control("GET", "state").body)
    return [pod for pod in state["pods"] if pod["status"] != "TERMINATED"]


def test_a_pod_lives_and_ends_on_runpod() -> None:
    world, simulator = _world()
    world.create_pod()
    world.pump()
    assert world.claim().phase is Phase.RELEASED, (world.claim(), world.telemetry.lines[-5:])
    alive = _alive(simulator)
    assert [pod["id"] for pod in alive] == [world.claim().instance_id]
    assert alive[0]["env"]["NEBULA_CLAIM"] == world.claim().claim_id  # type: ignore[index]
    assert alive[0]["ports"] == []
    world.run(2)
    assert running(world.pod())
    world.delete_pod()
    world.pump()
    world.tick()
    assert _alive(simulator) == []
    assert world.pod() is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_fifth_of_all_calls_failing_ends_in_one_pod_each_and_then_in_none(seed: int) -> None:
    world, simulator = _world()
    names = [f"train-{number:03}" for number in range(PODS)]
    simulator.account.faults.chaos = Chaos(share=0.2, seed=seed)
    for name in names:
        world.create_pod(name)
    world.pump(limit=20_000)
    world.run(10)
    simulator.account.faults.chaos = None
    world.clock.advance(timedelta(minutes=15))
    world.run(10)

    alive = _alive(simulator)
    marks = {(pod["env"]["NEBULA_INSTALLATION"], pod["env"]["NEBULA_CLAIM"]) for pod in alive}  # type: ignore[index]
    assert len(alive) == PODS
    assert len(marks) == PODS
    assert {installation for installation, _ in marks} == {INSTALLATION}
    assert all(running(world.pod(name)) for name in names)

    simulator.account.faults.chaos = Chaos(share=0.2, seed=seed + 100)
    for name in names:
        world.delete_pod(name)
    world.pump(limit=20_000)
    world.run(10)
    simulator.account.faults.chaos = None
    world.run(6)
    assert _alive(simulator) == []
    assert list(world.claims.live(CLUSTER)) == []
    assert world.committed() == 0


def test_a_type_refused_before_the_one_that_came_is_kept_in_the_attempt() -> None:
    world, simulator = _world()
    simulator.fail(Failure(400, NO_CAPACITY, method="POST", path="/v2/pods"))
    world.create_pod()
    world.pump()
    claim = world.claim()
    assert claim.phase is Phase.RELEASED
    first, came = claim.attempts[-1].candidate.instance_types[:2]
    assert claim.observation.instance_type == came
    (line,) = claim.attempts[-1].failures
    assert line.startswith(f"{first}: ")
    assert "no longer any instances" in line
