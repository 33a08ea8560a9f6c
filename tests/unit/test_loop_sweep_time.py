"""A sweep whose cluster answers slowly, or that has a great deal to announce, ends in time."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from nebula.domain.claim import Phase, TerminationReason
from nebula.domain.instance import Mark
from nebula.kubernetes.api import ClusterUnavailableError
from nebula.kubernetes.pod import Pod
from nebula.providers.errors import ProviderUnavailableError
from nebula.workflows import announce as announce_module
from nebula.workflows import sweep as sweep_module
from nebula.workflows import wake as wake_module
from nebula.workflows.image_wait import wake_image_waiters
from nebula.workflows.views import ClusterView
from nebula.workflows.wake import wake_budget_waiters

from tests.support.mischief import all_ended, claims, force_delete, remark, running_pods
from tests.support.world import INSTALLATION, MINUTE, World, pool_object

SLOW = timedelta(seconds=7)


def slow(world: World, monkeypatch: pytest.MonkeyPatch, name: str) -> list[Any]:
    """A call of the cluster or the ledger takes seven seconds; returns its calls."""
    target: Any = world.claims if name == "get" else world.api
    real, calls = getattr(target, name), []

    def drawn_out(*args: Any, **more: Any) -> Any:
        calls.append(args)
        world.clock.advance(SLOW)
        return real(*args, **more)

    monkeypatch.setattr(target, name, drawn_out)
    return calls


def test_announcing_many_pods_stops_in_time_and_reaches_all_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    names = [f"train-{number}" for number in range(40)]
    for name in names:
        world.create_pod(name, announce=False)
    world.clock.advance(MINUTE)
    slow(world, monkeypatch, "get")
    monkeypatch.setattr(sweep_module, "ANNOUNCED_PER_SWEEP", 7)
    announced: set[str] = set()
    for _ in range(14):
        before = world.clock.now()
        world.minute(pump=False)
        assert world.clock.now() - before < 2 * MINUTE
        found = [event["detail"]["name"] for event in world.publisher.take() if event["detail-type"] == "Pod Gated"]
        assert len(found) <= 7
        announced |= set(found)
    assert announced == set(names)


def test_one_sweep_announces_a_bounded_number_of_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    for number in range(12):
        world.create_pod(f"train-{number}", announce=False)
    monkeypatch.setattr(sweep_module, "ANNOUNCED_PER_SWEEP", 5)
    world.minute(pump=False)
    assert [event["detail-type"] for event in world.publisher.take()].count("Pod Gated") == 5


def test_pods_that_are_gone_are_noticed_before_anything_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    names = running_pods(world, 2)
    ids = [claim.claim_id for claim in claims(world)]
    for number in range(20):
        world.create_pod(f"new-{number}", announce=False)
    world.clock.advance(MINUTE)
    force_delete(world, *names)
    slow(world, monkeypatch, "get")
    world.minute()
    monkeypatch.undo()
    world.run(2)
    assert all_ended(world, ids, TerminationReason.POD_DELETED)


def test_slow_secrets_are_read_until_the_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.create_pod(imagePullSecrets=[{"name": "login"}])
    world.pump()
    (claim,) = claims(world)
    refused = claim.model_copy(update={"phase": Phase.PENDING, "reason": "ImagePull"})
    many = [refused.model_copy(update={"claim_id": f"{number:032x}"}) for number in range(40)]
    pod = Pod.from_object(world.pod() or {})
    reads = slow(world, monkeypatch, "get_secret")
    until = world.clock.now() + MINUTE
    wake_image_waiters(world.services("status_polling"), ClusterView(world.api, many, {pod.uid: pod}), until=until)
    assert len(reads) == 9


def test_a_cluster_that_does_not_answer_is_asked_for_one_nodepool_only(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.create_pod()
    world.pump()
    (claim,) = claims(world)
    asked: list[str] = []

    def silent(name: str) -> Any:
        asked.append(name)
        raise ClusterUnavailableError("GET: time-out")

    monkeypatch.setattr(world.api, "get_node_pool", silent)
    waiting = {"phase": Phase.PENDING, "wanted_per_hour": 1}
    many = [claim.model_copy(update={**waiting, "node_pool": f"pool-{number}"}) for number in range(20)]
    assert wake_budget_waiters(world.services("status_polling"), world.api, many) == 0
    assert len(asked) == 1


def test_deletes_that_hang_take_half_of_a_sweep_and_reach_every_orphan_in_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    names = running_pods(world, 2)
    for number in range(30):
        mark = Mark(installation=INSTALLATION, claim_id=f"{number:032x}", attempt=1)
        remark(world, world.simulated.console.add_foreign(), mark=mark)
    world.clock.advance(15 * MINUTE)
    world.tick()
    tried: set[str] = set()

    def hang(instance_id: str) -> None:
        tried.add(instance_id)
        world.clock.advance(SLOW)
        raise ProviderUnavailableError("DELETE: time-out")

    monkeypatch.setattr(world.simulated, "terminate", hang)
    force_delete(world, names[0])
    gone = [claim.claim_id for claim in claims(world) if claim.pod_name == names[0]]
    for _ in range(30):
        before = world.clock.now()
        world.minute()
        assert world.clock.now() - before < 4 * MINUTE
    assert len(tried) == 31
    assert world.telemetry.total("OrphanInstances") > 0
    assert len(world.billed()) == 32
    monkeypatch.undo()
    world.run(3)
    assert len(world.billed()) == 1
    assert all_ended(world, gone, TerminationReason.POD_DELETED)


def test_freed_budget_leaves_room_for_what_else_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody serves those who wait for budget; a machine whose end was not heard of is ended all the same."""
    monkeypatch.setattr(wake_module, "WOKEN_PER_LOOK", 5)
    monkeypatch.setattr(announce_module, "DUE_LIMIT", 10)
    world = World(pool=pool_object("simulated", budgetPerHour="4"))
    (first,) = running_pods(world, 1)
    for number in range(14):
        world.create_pod(f"waits-{number}")
    world.pump()
    patch = {"spec": {"budgetPerHour": "5000"}}
    world.emulator.handle(
        "PATCH",
        "/apis/nebula.inftyai.com/v1alpha1/nodepools/pool",
        {},
        {"Content-Type": "application/merge-patch+json"},
        json.dumps(patch).encode(),
    )
    real = world.deliver

    def without_placement(event: dict[str, Any]) -> None:
        if event["detail-type"] == "Claim Due" and event["detail"]["phase"] != Phase.PENDING:
            real(event)

    monkeypatch.setattr(world, "deliver", without_placement)
    (ending,) = [claim.claim_id for claim in claims(world) if claim.pod_name == first]
    world.delete_pod(first, announce=False)
    world.tick(pump=False)
    world.publisher.take()
    world.run(6)
    assert all_ended(world, [ending], TerminationReason.POD_DELETED)
    assert sum(claim.wanted_per_hour is not None for claim in claims(world)) > 10
