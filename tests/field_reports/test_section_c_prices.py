"""Field reports C, prices, shapes and regions (docs/field-reports.md)."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from nebula.domain.candidate import Shape
from nebula.domain.claim import Phase
from nebula.placement.sizing import quote
from nebula.workflows.explain import explain_pod

from local.runpod.faults import Failure
from local.runpod.market import CENTERS, Gpu
from tests.support.placing import offering
from tests.support.runpod_installation import RunPodInstallation, condition, with_container
from tests.support.world import World, pod_object, pool_object, running, until_true

H200 = "NVIDIA H200"


def wish(accelerator: str, count: int = 1, **requests: str) -> dict[str, Any]:
    """Changes for a Pod that asks for so many of an accelerator."""
    wanted = {"nvidia.com/gpu": str(count), **requests}
    labels = {"nebula.inftyai.com/accelerator-type": accelerator}
    return {"labels": labels, **with_container(resources={"limits": wanted, "requests": wanted})}


def test_c8_no_bid_is_ever_sent_and_what_is_billed_is_what_is_recorded() -> None:
    """A pool that wants Spot first: RunPod's REST v2 sells none, so nothing can be bid too high."""
    world = RunPodInstallation(capacityTypes=["Spot", "OnDemand"])
    world.create_pod()
    world.pump()
    assert {str(one.capacity_type) for one in world.providers.get("runpod").offerings().offerings} == {"OnDemand"}
    body = world.created()
    assert not [name for name in body if "bid" in name.lower() or "interruptible" in name.lower()]
    (record,) = world.account.alive()
    record.price = 2.71
    world.run(1)
    assert world.claim().observation.cost_per_hour == Decimal("2.71")


def test_c9_the_live_price_comes_before_the_sheet_and_new_types_are_for_sale() -> None:
    world = RunPodInstallation()
    world.account.market.gpus[H200] = Gpu(H200, "H200 SXM", 141, 7.77)
    world.account.market.gpus["NVIDIA GeForce RTX 5090"] = Gpu("NVIDIA GeForce RTX 5090", "RTX 5090", 32, 0.89)
    world.create_pod("h200", **wish("h200"))
    world.create_pod("new", **wish("rtx5090"))
    world.pump()
    first = world.claim("h200").attempts[-1].candidate
    assert first.price.gpus == Decimal("7.77")
    assert first.price.source == "live"
    assert first.price.as_of is not None
    assert world.claim("new").phase is Phase.RELEASED


def test_c9_a_price_from_an_old_sheet_says_so_where_it_is_compared() -> None:
    world = RunPodInstallation(strategy="LowestPrice")
    world.simulator.fail(Failure(500, method="GET", path="/v2/catalog/.*", times=1000))
    world.clock.advance(timedelta(days=200))
    answer = explain_pod(world.services("placement"), pod_object(), None)
    price = answer["candidates"][0]["price_per_hour"]
    assert price["source"] == "catalog"
    assert int(price["age_days"]) > 60


@pytest.mark.parametrize("reachable", [True, False])
def test_c10_eight_gpus_cost_eight_times_one_whatever_list_the_price_is_from(reachable: bool) -> None:
    world = RunPodInstallation()
    if not reachable:
        world.simulator.fail(Failure(503, method="GET", path="/v2/catalog/.*", times=1000))
    rows = [one for one in world.providers.get("runpod").offerings().offerings if one.accelerator == "H200"]
    assert rows
    for row in rows:
        priced = [quote(row, Shape(accelerator="H200", accelerator_count=count), count) for count in (1, 2, 4, 8)]
        per_gpu = [one.gpus / count for one, count in zip(priced, (1, 2, 4, 8), strict=True) if one is not None]
        assert len(per_gpu) == 4
        assert len(set(per_gpu)) == 1
        assert per_gpu[0] > 0


def _in_eights() -> World:
    world = World(pool=pool_object())
    world.simulated.market.offerings = (offering("simulated", per_accelerator=False, accelerator_count=8, price="20"),)
    return world


def test_c11_four_where_only_eight_are_sold_are_refused_with_the_way_out() -> None:
    world = _in_eights()
    world.create_pod(**wish("h100", 4))
    world.pump()
    told = condition(world.pod())
    assert told["status"] == "False"
    assert "only in 8" in told["message"]
    assert world.billed() == []


def test_c11_the_pool_may_allow_the_larger_shape_and_the_decision_says_which() -> None:
    world = World(pool=pool_object(allowLargerShapes=True))
    world.simulated.market.offerings = _in_eights().simulated.market.offerings
    world.create_pod(**wish("h100", 4))
    world.pump()
    claim = world.claim()
    assert claim.phase is Phase.RELEASED
    assert claim.shape.accelerator_count == 4
    assert claim.attempts[-1].candidate.shape.accelerator_count == 8
    assert world.committed() == Decimal(20)


def test_c12_many_large_pods_are_bound_to_one_virtual_node() -> None:
    world = World()
    names = [f"large-{number}" for number in range(40)]
    for name in names:
        world.create_pod(name, **wish("h100", 8, cpu="64", memory="256Gi"))
    world.pump()
    until_true(world, lambda: all(running(world.pod(name)) for name in names), minutes=2)
    assert {(world.pod(name) or {})["spec"]["nodeName"] for name in names} == {"nebula-simulated"}


@pytest.mark.parametrize("declared", [["US"], ["US-TX-3"], ["us", "US-XX-9"]])
def test_c13_a_region_that_is_sold_out_is_waited_for_and_never_left(declared: list[str]) -> None:
    """Group, literal, and an id that nobody knows: Canada has plenty, and does not get the Pod."""
    world = RunPodInstallation(providers=[{"name": "runpod", "regions": declared}])
    for center in CENTERS:
        if center.startswith("US-"):
            world.account.market.set_stock(None, 0, center=center, advertised="HIGH")
    world.create_pod()
    world.pump()
    world.run(3)
    assert world.alive() == []
    sent = [center for body in world.calls("POST", "/v2/pods") for center in body["dataCenterIds"]]
    assert sent
    assert all(center.startswith("US-") for center in sent)
    assert condition(world.pod())["status"] == "False"
    world.account.market.set_stock(None, None)
    until_true(world, lambda: running(world.pod()), minutes=15)
    (record,) = world.account.alive()
    assert record.place[1].startswith("US-")


def test_c13_a_region_that_does_not_exist_is_no_region_at_all() -> None:
    world = RunPodInstallation(providers=[{"name": "runpod", "regions": ["ATLANTIS-1"]}])
    world.create_pod()
    world.pump()
    world.run(2)
    assert world.alive() == []
    assert condition(world.pod())["status"] == "False"
