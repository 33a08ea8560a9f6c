"""Field reports C, capacity: who is asked next, what is remembered, what the Pod is told (docs/field-reports.md)."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from nebula.domain.claim import AttemptOutcome, Phase
from nebula.events.batch import handle
from nebula.providers.errors import (
    NoCapacityError,
    QuotaExceededError,
)
from nebula.providers.runpod.translate import DEFAULT_DISK_GB
from nebula.providers.simulated import Behaviour, Call, SimulatedProvider

from local.runpod.faults import Failure
from tests.support.placements import released
from tests.support.runpod import NO_CAPACITY, NVL, PCIE, SXM
from tests.support.runpod_installation import RunPodInstallation, condition, events, with_container
from tests.support.scenarios import provision_event
from tests.support.simulated import QUEUES
from tests.support.world import World, pool_object, running, until_true

SPOT_FIRST: dict[str, Any] = {"capacityTypes": ["Spot", "OnDemand"]}


def gpus(count: str, **more: str) -> dict[str, Any]:
    """Changes for a Pod: so many GPUs, and further requests."""
    wanted = {"nvidia.com/gpu": count, **more}
    return with_container(resources={"limits": wanted, "requests": wanted})


@pytest.mark.parametrize("code", ["MaxSpotInstanceCountExceeded", "VcpuLimitExceeded", "UnfulfillableCapacity"])
def test_c1_a_quota_on_spot_is_not_retried_on_spot_and_on_demand_is_tried(code: str) -> None:
    world = World(pool=pool_object(**SPOT_FIRST))
    kind = NoCapacityError if code == "UnfulfillableCapacity" else QuotaExceededError
    world.simulated.script.fail(
        Call.PROVISION,
        kind(f"{code}: Max spot instance count exceeded", code=code),
        times=1000,
        matches=lambda request: str(request.candidate.capacity_type) == "Spot",  # type: ignore[attr-defined]
    )
    world.create_pod()
    world.pump()
    claim = world.claim()
    assert [str(attempt.candidate.capacity_type) for attempt in claim.attempts] == ["Spot", "OnDemand"]
    assert claim.phase is Phase.RELEASED
    assert code in claim.attempts[0].detail
    world.create_pod("second")
    world.pump()
    assert [str(attempt.candidate.capacity_type) for attempt in world.claim("second").attempts] == ["OnDemand"]


STRANGE = [
    (400, "InsufficientFlurbCapacity: flurbs are out"),
    (409, "E_TRANSIENT_PLACEMENT_17"),
    (422, "placement oracle declined"),
    (418, "short and stout"),
    (451, ""),
    (500, "InternalError: shard 9"),
    (507, "Insufficient Storage"),
    (302, ""),
]


@pytest.mark.parametrize(("status", "text"), STRANGE)
def test_c2_a_code_that_nobody_knows_is_tried_again_and_never_lost(status: int, text: str) -> None:
    world = RunPodInstallation()
    fault = Failure(status, text, method="POST", path="/v2/pods", times=2)
    world.simulator.fail(fault)
    world.create_pod()
    world.pump()
    assert fault.times < 2
    for _ in range(30):
        claim = world.claim()
        assert claim.phase is Phase.RELEASED or claim.next_action_at is not None, claim
        world.tick()
    until_true(world, lambda: running(world.pod()), minutes=15)
    assert world.alive() == [world.claim().instance_id]


def test_c2_a_bug_of_ours_within_a_create_comes_again_as_well() -> None:
    """Not even a provider's error: the record is named as failed, and the claim is due after its lease."""
    world = World()
    world.simulated.script.fail(Call.PROVISION, KeyError("InsufficientFlurbCapacity"))
    world.create_pod()
    world.deliver(world.collect().pop(0))
    (placed,) = world.collect()
    world.queue.clear()
    record = {"messageId": "m-1", "body": json.dumps(placed)}
    answer = handle({"Records": [record]}, lambda event: provision_event(world, event), world.telemetry)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m-1"}]}
    assert world.claim().next_action_at == world.claim().attempts[-1].lease_until
    world.run(6)
    assert running(world.pod())
    assert len(world.billed()) == 1


def test_c3_each_pass_says_on_the_pod_why_it_still_waits() -> None:
    world = World()
    world.simulated.market.limit(0)
    world.create_pod()
    world.pump()
    first = released(world)
    assert (first["status"], first["reason"]) == ("False", "Deferred")
    assert "NoCapacity" in first["message"]
    for _ in range(6):
        world.minute()
        now = released(world)
        assert now["status"] == "False"
        assert "last answer: NoCapacity from simulated: no H100" in now["message"]
    deferred = events(world, "PlacementDeferred")
    assert 1 <= len(deferred) <= 4, "counted, not repeated"
    assert events(world, "ProvisionRejected")


def test_c4_the_literal_text_is_capacity_of_that_shape_and_floors_are_the_pod_s_own() -> None:
    world = RunPodInstallation()
    for kind in (SXM, NVL, PCIE):
        world.account.market.set_stock(kind, 0, advertised="HIGH")
    world.create_pod(**gpus("1"))
    world.pump()
    asked = world.calls("POST", "/v2/pods")
    assert asked
    assert all(set(body["gpu"]) == {"id", "count"} for body in asked), "no vCPU or RAM floor that the Pod has not"
    assert "NoCapacity" in condition(world.pod())["message"]
    assert NO_CAPACITY[:60] in world.claim().attempts[-1].failures[0]
    (block,) = world.blocks.active("runpod", world.clock.now())
    assert (block.reason, block.shape) == ("NoCapacity", str(world.claim().shape))

    for kind in (SXM, NVL, PCIE):
        world.account.market.set_stock(kind, None)
    world.create_pod("wider", **gpus("2", cpu="9", memory="65Gi"))
    world.pump()
    assert world.claim("wider").phase is Phase.RELEASED, "another shape is not blocked"
    body = world.calls("POST", "/v2/pods")[-1]
    assert (body["gpu"]["minVcpuCountPerGpu"], body["gpu"]["minRamPerGpu"]) == (5, 33)


@pytest.mark.parametrize(("asked", "sent"), [(None, DEFAULT_DISK_GB), ("120G", 120), ("1Ki", 1)])
def test_c5_the_disk_is_always_in_the_request_and_no_template_is(asked: str | None, sent: int) -> None:
    world = RunPodInstallation()
    world.create_pod(**gpus("1", **({"ephemeral-storage": asked} if asked else {})))
    world.pump()
    body = world.created()
    assert body["disk"] == sent
    assert not [name for name in body if "template" in name.lower()]


def test_c6_no_gpu_is_the_cpu_request_and_a_count_of_nought_never_reaches_runpod() -> None:
    world = RunPodInstallation()
    labels = {"nebula.inftyai.com/accelerator-type": ""}
    world.create_pod("cpu", labels=labels, **with_container(resources={"requests": {"cpu": "2"}}))
    world.create_pod("nought", **gpus("0"))
    world.pump()
    (body,) = world.calls("POST", "/v2/pods")
    assert body["cpu"]["vcpuCount"] == 2
    assert "gpu" not in body
    assert world.claim("cpu").phase is Phase.RELEASED
    told = condition(world.pod("nought"))
    assert told["status"] == "False"
    assert "NoCapacity" not in told["message"]
    assert "nvidia.com/gpu" in told["message"]


def test_c7_a_row_of_dead_spot_offers_is_not_walked_to_its_end_in_one_chain() -> None:
    providers = [f"spot-{number:02}" for number in range(8)]
    world = World(pool=pool_object(*providers, capacityTypes=["Spot"], failover={"blocklistTTL": "10m"}))
    places = [SimulatedProvider(world.clock, name=name) for name in providers]
    world.providers._providers = {place.name: place for place in places}
    world.providers.keys = dict.fromkeys(providers, "key-1")
    for place in places[:-1]:
        place.market.limit(0)

    def tries() -> int:
        return sum(place.script.counts[Call.PROVISION] for place in places)

    world.create_pod()
    world.pump()
    assert 0 < tries() <= 5, "the chain ends; the next tick goes on"
    until_true(world, lambda: running(world.pod()))
    assert max(place.script.counts[Call.PROVISION] for place in places) == 1
    before = tries()
    world.create_pod("second")
    world.pump()
    assert world.claim("second").phase is Phase.RELEASED
    assert tries() == before + 1, "what was refused is remembered for everybody"


@pytest.mark.parametrize("limit", ["VcpuLimitExceeded", "MaxSpotInstanceCountExceeded"])
def test_c14_a_quota_of_nought_is_named_on_the_pod_with_its_code(limit: str) -> None:
    world = World()
    words = f"{limit}: you have requested more vCPU capacity than your limit of 0 for Running On-Demand P instances"
    world.simulated.script.fail(Call.PROVISION, QuotaExceededError(words, code=limit), times=1000)
    world.create_pod()
    world.pump()
    world.run(1)
    told = released(world)
    assert told["status"] == "False"
    assert limit in told["message"]
    assert "limit of 0" in told["message"]
    assert any(limit in event["message"] for event in events(world, "ProvisionRejected"))


@pytest.mark.parametrize("how", ["dies", "never runs"])
def test_c15_a_machine_that_dies_at_its_launch_or_never_runs_is_replaced_behind_the_gate(how: str) -> None:
    world = World(pool=pool_object("queueing", "simulated"))
    boot = Behaviour(boot=timedelta(hours=9))
    queueing = SimulatedProvider(world.clock, name="queueing", capabilities=QUEUES, behaviour=boot)
    world.providers._providers["queueing"] = queueing
    world.providers.keys["queueing"] = "key-1"
    world.create_pod()
    world.pump(copies=2)
    first = str(world.claim().instance_id)
    assert world.claim().phase is Phase.PROVISIONED
    if how == "dies":
        queueing.console.fail(first, "IP_SPACE_EXHAUSTED")
    else:
        world.run(4)
        assert world.claim().phase is Phase.PROVISIONED
    queueing.market.limit(0)
    until_true(world, lambda: running(world.pod()), minutes=4)
    assert world.billed(queueing) == []
    assert world.billed() == [world.claim().instance_id]
    assert [attempt.candidate.provider for attempt in world.claim().attempts] == ["queueing", "simulated"]
    assert world.claim().attempts[0].outcome is AttemptOutcome.GONE
