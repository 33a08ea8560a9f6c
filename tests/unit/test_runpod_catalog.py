"""Prices and stock: live first, kept a few minutes, the shipped list when RunPod cannot be read."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from nebula.domain.candidate import Shape
from nebula.domain.offering import Offering
from nebula.placement.sizing import quote

from local.runpod.faults import Failure
from tests.support.runpod import CPU_ONLY, NVL, PCIE, START, SXM, RunPodWorld

DISK = Decimal("0.0001369863")


def rows(world: RunPodWorld, accelerator: str | None, cloud: str = "SECURE") -> dict[str, Offering]:
    offers = world.provider.offerings().offerings
    return {o.instance_type: o for o in offers if o.accelerator == accelerator and o.holds_for({"cloud": cloud})}


def live(gpus: Any = None, cpus: Any = None) -> RunPodWorld:
    """A world whose next catalog answers are these; the community lane answers first without rows."""
    world = RunPodWorld()
    world.simulator.fail(Failure(200, path="/v2/catalog/gpus", raw=json.dumps({"gpus": gpus or []})))
    world.simulator.fail(Failure(200, path="/v2/catalog/gpus", raw=json.dumps({"gpus": []})))
    world.simulator.fail(Failure(200, path="/v2/catalog/cpus", raw=json.dumps({"cpus": cpus or []})))
    return world


GPU = {
    "id": SXM,
    "name": "H100 SXM",
    "secure": True,
    "community": False,
    "price": {"secure": 3.29, "community": 2.69},
    "maxCount": {"secure": 8, "community": 0},
}


def test_interchangeable_ids_share_one_canonical_type() -> None:
    assert set(rows(RunPodWorld(), "H100")) == {SXM, NVL, PCIE}


def test_prices_are_per_gpu_and_dated() -> None:
    world = RunPodWorld()
    listed = world.provider.offerings()
    assert (listed.source, listed.note) == ("live", "")
    row = rows(world, "H100")[SXM]
    assert row.per_accelerator
    assert (row.price_per_hour, row.source, row.as_of) == (Decimal("3.29"), "live", START)
    assert row.disk_price_per_gb_hour == DISK
    assert row.default_disk_gb == 20
    assert row.max_count == 8


@pytest.mark.parametrize(("count", "gpus"), [(1, "3.29"), (2, "6.58"), (4, "13.16"), (8, "26.32")])
def test_the_price_of_a_shape_grows_with_its_count(count: int, gpus: str) -> None:
    priced = quote(
        rows(RunPodWorld(), "H100")[SXM], Shape(accelerator="H100", accelerator_count=count, disk_gb=730), count
    )
    assert priced is not None
    assert priced.gpus == Decimal(gpus)
    assert priced.disk == DISK * 730
    assert priced.total == priced.gpus + priced.disk


def test_the_price_of_a_cpu_pod_is_its_vcpus_and_its_disk() -> None:
    row = rows(RunPodWorld(), None)["cpu3g"]
    priced = quote(row, CPU_ONLY, 0)
    assert priced is not None
    assert priced.cpu == Decimal("0.08")
    assert priced.total == Decimal("0.08") + DISK * 20
    assert row.memory_gib_per_vcpu == 4


def test_more_gpus_than_a_machine_has_are_not_offered() -> None:
    assert rows(RunPodWorld(), "H100")[PCIE].max_count == 4


def test_the_clouds_are_two_price_lists() -> None:
    world = RunPodWorld()
    assert rows(world, "H100", "COMMUNITY")[SXM].price_per_hour == Decimal("2.69")
    secure_by_default = [o for o in world.provider.offerings().offerings if o.instance_type == SXM and o.holds_for({})]
    assert [o.price_per_hour for o in secure_by_default] == [Decimal("3.29")]
    assert set(rows(world, None, "COMMUNITY")) == set(rows(world, None))


def test_a_lane_that_is_not_sold_is_not_offered_though_it_has_a_price() -> None:
    world = RunPodWorld()
    assert "NVIDIA B200" in rows(world, "B200")
    assert rows(world, "B200", "COMMUNITY") == {}


@pytest.mark.parametrize("flag", [False, None, "true", 1, 0])
def test_only_a_true_flag_sells(flag: Any) -> None:
    assert live([GPU | {"secure": flag}], []).provider.offerings().source == "catalog"


@pytest.mark.parametrize("price", [0, -1, None, "3.29", True, [], 10**12, 1e-300, 0.0009])
def test_a_price_that_is_no_price_is_not_offered(price: Any) -> None:
    offers = live([GPU | {"price": {"secure": price}}, GPU | {"id": NVL}]).provider.offerings()
    assert [o.instance_type for o in offers.offerings] == [NVL]


def test_a_slice_of_a_card_is_not_the_card() -> None:
    world = RunPodWorld()
    assert set(rows(world, "RTXPRO6000")) == {"NVIDIA RTX PRO 6000 Blackwell Server Edition"}
    assert set(rows(world, "RTXPRO6000-MIG-24GB")) == {"NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb"}


def test_a_type_that_is_new_is_offered_under_its_own_name() -> None:
    world = live([GPU | {"id": "NVIDIA GeForce RTX 6090", "name": "RTX 6090"}])
    assert set(rows(world, "RTX-6090")) == {"NVIDIA GeForce RTX 6090"}


def test_stock_is_told_per_data_center() -> None:
    world = RunPodWorld()
    world.account.market.set_stock(SXM, 0, center="US-TX-3")
    world.account.market.set_stock(PCIE, 0)
    offers = rows(world, "H100")
    assert offers[SXM].available
    assert "US-TX-3" in offers[SXM].regions
    assert set(offers[SXM].regions) - set(offers[SXM].available_regions or ()) == {"US-TX-3"}
    assert not offers[PCIE].available
    assert offers[NVL].available


def test_a_type_without_a_word_on_stock_may_be_had() -> None:
    (row,) = live([GPU]).provider.offerings().offerings
    assert row.available
    assert row.available_regions is None


def test_a_warm_process_asks_once_in_three_minutes() -> None:
    world = RunPodWorld()
    first = world.provider.offerings()
    world.pass_time(179)
    assert world.provider.offerings() is first
    assert world.count("GET", "/v2/catalog") == 3
    world.pass_time(2)
    assert world.provider.offerings().offerings[0].as_of > first.offerings[0].as_of
    assert world.count("GET", "/v2/catalog") == 6


@pytest.mark.parametrize(
    "failure",
    [
        Failure(500, path="/v2/catalog/.*", times=9),
        Failure(401, path="/v2/catalog/.*"),
        Failure(403, path="/v2/catalog/.*"),
        Failure(429, path="/v2/catalog/.*"),
        Failure(path="/v2/catalog/.*", drop=True, times=9),
        Failure(200, path="/v2/catalog/cpus", raw="<html>"),
        Failure(200, path="/v2/catalog/gpus", raw="{}"),
        Failure(200, path="/v2/catalog/gpus", raw='{"gpus": {}}'),
    ],
    ids=lambda failure: f"{failure.status}-{failure.path}-{failure.raw}",
)
def test_the_shipped_list_stands_in_and_says_why(failure: Failure) -> None:
    world = RunPodWorld()
    world.simulator.fail(failure)
    listed = world.provider.offerings()
    assert listed.source == "catalog"
    assert "could not be read" in listed.note
    row = rows(world, "H100")[SXM]
    assert (row.source, row.as_of.date().isoformat(), row.price_per_hour) == ("catalog", "2026-08-27", Decimal("3.29"))
    assert row.disk_price_per_gb_hour == DISK


def test_the_live_list_is_asked_for_again_soon() -> None:
    world = RunPodWorld()
    world.simulator.fail(Failure(401, path="/v2/catalog/.*"))
    assert world.provider.offerings().source == "catalog"
    world.pass_time(30)
    assert world.provider.offerings().source == "catalog"
    world.pass_time(31)
    assert world.provider.offerings().source == "live"


def test_odd_rows_are_passed_over() -> None:
    odd: list[Any] = [None, 7, {}, {"id": 5}, GPU | {"id": ""}, GPU | {"price": []}, GPU | {"maxCount": "x", "id": NVL}]
    offers = live(odd, [{"id": "cpu3c"}, {"id": "x", "price": {"securePerVcpu": 1}}]).provider.offerings().offerings
    assert [(o.instance_type, o.max_count) for o in offers] == [(NVL, None)]


@pytest.mark.parametrize(("least", "smallest"), [(2, 2), (3, 4), (8, 8), (1, 2), (None, 2)])
def test_a_flavors_smallest_size_is_a_power_of_two(least: Any, smallest: int) -> None:
    cpu = {"id": "c", "price": {"securePerVcpu": 0.5}, "ramGbPerVcpu": 2.5, "vcpu": {"min": least, "max": 64}}
    (row,) = live([], [cpu]).provider.offerings().offerings
    assert row.rented_vcpus(Shape()) == smallest
    assert row.memory_gib_per_vcpu == Decimal("2.5")
