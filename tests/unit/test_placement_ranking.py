"""Tiers are hard, strategies rank within one, and the price is the whole one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal

import pytest
from nebula.domain.candidate import CapacityType, Shape
from nebula.domain.nodepool import NodePool, ProviderEntry, Strategy
from nebula.domain.offering import Offering
from nebula.placement.engine import decide
from nebula.placement.report import MAX_LINES, decision_lines
from nebula.placement.request import ProviderSupply
from nebula.providers.base import RegionSet
from nebula.stores.blocks import Block

from tests.support.placing import NOW, block, offering, pool, request, supply

SPOT, ON_DEMAND = CapacityType.SPOT, CapacityType.ON_DEMAND


def both_tiers(name: str, on_demand: str, spot: str) -> list[Offering]:
    return [offering(name, price=on_demand), offering(name, price=spot, capacity_type=SPOT)]


def choose(
    the_pool: NodePool,
    supplies: Sequence[ProviderSupply],
    *,
    blocks: Sequence[Block] = (),
    live: Mapping[str, int] | None = None,
) -> str:
    decision = decide(request(), the_pool, supplies, blocks, live or {}, NOW)
    assert decision.candidate is not None
    return f"{decision.candidate.provider}/{decision.candidate.capacity_type}"


def test_ordered_takes_the_first_of_the_list_whatever_it_costs() -> None:
    supplies = [supply("one", [offering("one", price="9")]), supply("two", [offering("two", price="1")])]
    assert choose(pool("one", "two"), supplies) == "one/OnDemand"


def test_lowest_price_takes_the_cheapest_and_ties_fall_to_the_list() -> None:
    rows = {name: [offering(name, price=price)] for name, price in (("one", "3"), ("two", "2"), ("three", "2.0"))}
    supplies = [supply(name, rows[name]) for name in rows]
    assert choose(pool(*rows, strategy=Strategy.LOWEST_PRICE), supplies) == "two/OnDemand"


@pytest.mark.parametrize("strategy", Strategy)
def test_a_later_tier_is_entered_only_when_the_earlier_has_nothing(strategy: Strategy) -> None:
    both = pool("one", "two", capacity_types=(ON_DEMAND, SPOT), strategy=strategy)
    supplies = [supply("one", both_tiers("one", "5", "1")), supply("two", both_tiers("two", "6", "0.5"))]
    assert choose(both, supplies) == "one/OnDemand"
    blocks = [block("one", capacity_type="OnDemand"), block("two", capacity_type="OnDemand")]
    assert choose(both, supplies, blocks=blocks).endswith("/Spot")


@pytest.mark.parametrize("price", ["0", "-1"])
def test_a_price_of_nothing_wins_nothing(price: str) -> None:
    rows = [offering("one", price=price, instance_type="free"), offering("one", price="3.00", instance_type="real")]
    decision = decide(request(), pool("one", strategy=Strategy.LOWEST_PRICE), [supply("one", rows)], [], {}, NOW)
    assert decision.candidate is not None
    assert decision.candidate.instance_types == ("real",)


def test_weighted_approaches_the_weights() -> None:
    entries = [ProviderEntry(name="one", weight=3), ProviderEntry(name="two", weight=1)]
    weighted = pool(*entries, strategy=Strategy.WEIGHTED)
    supplies = [supply("one"), supply("two")]
    live: Counter[str] = Counter()
    for _ in range(40):
        live[choose(weighted, supplies, live=live).split("/")[0]] += 1
    assert live == {"one": 30, "two": 10}


def test_weighted_gives_a_blocked_providers_share_to_the_others() -> None:
    entries = [
        ProviderEntry(name="one", weight=8),
        ProviderEntry(name="two", weight=1),
        ProviderEntry(name="three", weight=1),
    ]
    weighted = pool(*entries, strategy=Strategy.WEIGHTED)
    supplies = [supply("one"), supply("two"), supply("three")]
    live: Counter[str] = Counter()
    for _ in range(10):
        live[choose(weighted, supplies, blocks=[block("one")], live=live).split("/")[0]] += 1
    assert live == {"two": 5, "three": 5}


def test_the_price_is_gpus_and_disk() -> None:
    rows = [
        offering("one", price="2.00", disk_price_per_gb_hour=Decimal("0.001"), default_disk_gb=20),
        offering("one", price="2.10", instance_type="one-other"),
    ]
    two = Shape(accelerator="H100", accelerator_count=2)
    chosen = decide(request(two), pool(), [supply("one", rows)], (), {}, NOW).candidate
    assert chosen is not None
    assert (chosen.price.gpus, chosen.price.disk, chosen.price.total) == (Decimal(4), Decimal("0.02"), Decimal("4.02"))
    assert chosen.instance_types == ("one-H100", "one-other")
    assert chosen.reserve_per_hour == Decimal("4.20")


def test_cpu_only_is_priced_by_the_vcpus_that_must_be_rented() -> None:
    rows = [offering("one", None, "0.03", memory_gib_per_vcpu=Decimal(2))]
    asked = Shape(cpu=Decimal("1.5"), memory_gib=Decimal(10))
    chosen = decide(request(asked), pool(), [supply("one", rows)], (), {}, NOW).candidate
    assert chosen is not None
    assert chosen.price.cpu == Decimal("0.24"), "10 GiB at 2 GiB each is 5 vCPUs, sold in powers of two: 8"
    huge = Shape(cpu=Decimal(64))
    assert decide(request(huge), pool(), [supply("one", rows)], (), {}, NOW).candidate is None


def test_ids_above_the_maximum_are_not_walked() -> None:
    rows = [offering(price="2"), offering(price="3", instance_type="dear")]
    capped = decide(request(), pool(max_price_per_hour=Decimal("2.5")), [supply("one", rows)], (), {}, NOW).candidate
    assert capped is not None
    assert (capped.instance_types, capped.reserve_per_hour) == (("one-H100",), Decimal(2))


def test_what_is_left_of_the_budget_narrows_the_walk() -> None:
    rows = [offering(price="2"), offering(price="3", instance_type="dear")]
    chosen = decide(request(budget_left=Decimal("2.5")), pool(), [supply("one", rows)], (), {}, NOW).candidate
    assert chosen is not None
    assert chosen.reserve_per_hour == Decimal(2)


def test_two_kinds_of_one_provider_are_two_places() -> None:
    secure = ProviderEntry(name="one", parameters={"cloud": "SECURE"})
    community = ProviderEntry(name="one", parameters={"cloud": "COMMUNITY"})
    both = pool(secure, community, secure)
    decision = decide(
        request(),
        both,
        [supply(secure), supply(community), supply(secure)],
        [block(region="any[cloud=SECURE]")],
        {},
        NOW,
    )
    assert [v.offer.refusal is None for v in decision.verdicts] == [False, True]
    assert decision.candidate is not None
    assert decision.candidate.parameters == {"cloud": "COMMUNITY"}


def test_regions_are_candidates_in_the_order_of_the_list() -> None:
    entry = ProviderEntry(name="one", regions=("b", "a"))
    rows = [offering(regions=("a",), price="1"), offering(regions=("b",), price="2")]
    sets = [RegionSet(label=name, ids=(name,)) for name in ("b", "a")]
    ordered = decide(request(), pool(entry), [supply(entry, rows, regions=sets)], (), {}, NOW)
    cheapest = decide(
        request(), pool(entry, strategy=Strategy.LOWEST_PRICE), [supply(entry, rows, regions=sets)], (), {}, NOW
    )
    assert ordered.candidate is not None
    assert cheapest.candidate is not None
    assert (ordered.candidate.region, cheapest.candidate.region) == ("b", "a")


def test_lines_say_when_a_price_is_old_and_stay_bounded() -> None:
    old = offering(as_of=NOW - timedelta(days=61))
    names = [f"p{number}" for number in range(8)]
    sets = [RegionSet(label=f"r{number}", ids=(f"r{number}",)) for number in range(5)]
    supplies = [supply(name, [old.model_copy(update={"provider": name})], regions=sets) for name in names]
    decision = decide(request(), pool(*names), supplies, [block(name) for name in names[1:]], {}, NOW)
    lines = decision_lines(decision, NOW)
    assert len(lines) == MAX_LINES
    assert lines[0] == "p0 H100:1/cpu=0/mem=0Gi/disk=default OnDemand r1 $2.00/h: rank 2 [price is 61 days old]"
    assert "blocked until 2026-12-01T12:00:30Z: NoCapacity [price is 61 days old]" in lines[5]
    assert lines[-1] == "and 20 more"
