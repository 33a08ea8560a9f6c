"""Field reports C, throttles: an answer that says nothing of what was asked (docs/field-reports.md)."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal

import pytest
from nebula.domain.claim import Phase
from nebula.events.batch import handle
from nebula.providers.errors import (
    ProviderUnavailableError,
    RateLimitedError,
)
from nebula.providers.simulated import Call

from local.runpod.faults import Failure
from tests.support.runpod_installation import RunPodInstallation, condition
from tests.support.scenarios import provision_event, up
from tests.support.world import CLUSTER, World, running, until_true


def test_c16_a_throttle_holds_back_what_was_throttled_and_loses_none_of_its_batch() -> None:
    world = World()
    names = [f"train-{number}" for number in range(10)]
    for name in names:
        world.create_pod(name)
    while len(world.collect()) > len([e for e in world.queue if e["detail-type"] == "Claim Placed"]):
        world.deliver(next(e for e in world.queue if e["detail-type"] == "Pod Gated"))
        world.queue.remove(next(e for e in world.queue if e["detail-type"] == "Pod Gated"))
    throttle = RateLimitedError("RequestLimitExceeded", retry_after=timedelta(seconds=20), code="RequestLimitExceeded")
    world.simulated.script.fail(Call.PROVISION, throttle, matches=lambda request: "train-3" in request.name)  # type: ignore[attr-defined]
    records = [{"messageId": f"m{n}", "body": json.dumps(event)} for n, event in enumerate(world.queue)]
    world.queue.clear()
    assert len(records) == 10
    answer = handle({"Records": records}, lambda event: provision_event(world, event), world.telemetry)
    assert answer == {"batchItemFailures": []}
    claims = [world.claim(name) for name in names]
    assert all(one.phase is Phase.RELEASED or one.next_action_at is not None for one in claims)
    assert world.claim("train-3").phase is Phase.PLACED
    assert world.claim("train-3").reason == "RateLimited"
    until_true(world, lambda: all(running(world.pod(name)) for name in names))
    assert len(world.billed()) == 10
    assert world.simulated.script.counts[Call.PROVISION] == 11


def test_c17_a_503_is_no_capacity_error_and_blocks_nothing() -> None:
    world = RunPodInstallation()
    world.simulator.fail(Failure(503, "Request limit exceeded.", method="POST", path="/v2/pods", times=2))
    world.create_pod()
    world.pump()
    assert len(world.calls("POST", "/v2/pods")) == 1, "outcome unknown: looked for before it is sent again"
    assert not world.blocks.active("runpod", world.clock.now())
    assert "NoCapacity" not in str(condition(world.pod()))
    until_true(world, lambda: running(world.pod()))
    assert world.alive() == [world.claim().instance_id]
    assert not world.blocks.active("runpod", world.clock.now())


@pytest.mark.parametrize(
    "answer",
    [
        RateLimitedError("RequestLimitExceeded", retry_after=timedelta(seconds=5)),
        ProviderUnavailableError("DescribeInstances: 503"),
    ],
)
def test_c18_a_describe_that_is_throttled_fences_nobody_and_is_asked_once_a_tick(answer: Exception) -> None:
    world = World()
    names = [f"train-{number}" for number in range(7)]
    for name in names:
        up(world, name)
    world.simulated.script.fail(Call.LIST, answer, times=1000)
    before = world.simulated.script.counts[Call.LIST]
    for _ in range(8):
        world.tick()
    assert world.simulated.script.counts[Call.LIST] - before == 8
    assert world.simulated.script.counts[Call.GET] == 0
    assert all(running(world.pod(name)) for name in names)
    assert len(list(world.claims.live(CLUSTER))) == 7
    assert world.committed() == 7 * world.claim(names[0]).committed_per_hour > Decimal(0)
