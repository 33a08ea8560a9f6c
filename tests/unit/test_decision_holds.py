"""What was decided at placement is bought only while it still holds: it is checked again before the create."""

from __future__ import annotations

import json
from typing import Any

import pytest
from nebula.domain.claim import Phase
from nebula.providers.simulated import Call

from tests.support.placements import placed_only
from tests.support.world import World

GROUP = "nebula.inftyai.com"
POOL = f"/apis/{GROUP}/v1alpha1/nodepools/pool"


def _placed() -> World:
    world = World()
    placed_only(world)
    return world


def _edit_pool(world: World, **spec: Any) -> None:
    body = json.dumps({"spec": spec}).encode()
    answer = world.emulator.handle("PATCH", POOL, {}, {"Content-Type": "application/merge-patch+json"}, body)
    assert answer.status == 200


@pytest.mark.parametrize(
    "spec",
    [
        {"maxPricePerHour": "0.01"},
        {"budgetPerHour": "0.01"},
        {"providers": [{"name": "runpod"}]},
    ],
)
def test_a_pool_that_closed_after_the_placement_buys_nothing(spec: dict[str, Any]) -> None:
    world = _placed()
    _edit_pool(world, **spec)
    world.pump()
    world.run(2)
    assert world.simulated.script.counts[Call.PROVISION] == 0
    assert world.claim().phase is Phase.PENDING


def test_a_pod_that_asks_for_something_else_is_decided_again() -> None:
    world = _placed()
    labels = {f"{GROUP}/accelerator-type": "a100-80gb"}
    world.api.patch_pod("default", "train", {"metadata": {"labels": labels}})
    world.pump()
    world.run(2)
    claim = world.claim()
    assert claim.shape.accelerator == "A100-80GB"
    assert all(attempt.candidate.shape.accelerator == "A100-80GB" for attempt in claim.attempts)


def test_one_malformed_pod_makes_its_cluster_unknown_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.create_pod()
    world.pump()
    real = world.api.list_pods
    odd = {"metadata": {"name": "odd", "uid": "u", "namespace": "default"}, "spec": {"containers": "x"}}
    monkeypatch.setattr(world.api, "list_pods", lambda **selectors: [*real(**selectors), odd])
    world.run(2)
    assert world.claim().phase is Phase.RELEASED
    assert len(world.billed()) == 1
