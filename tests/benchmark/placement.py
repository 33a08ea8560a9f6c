"""How long one placement decision takes.

*Warm* is a process that has seen the price
lists and the shape before (a Lambda between two events); *cold* arranges the lists anew each time.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from nebula.domain.candidate import CapacityType, Shape
from nebula.domain.nodepool import NodePool, ProviderEntry, Strategy
from nebula.domain.offering import Offering
from nebula.placement.catalogue import Catalogue
from nebula.placement.engine import decide
from nebula.placement.request import PlacementRequest, ProviderSupply
from nebula.providers.base import RegionSet
from nebula.stores.blocks import Block

from tests.support.placing import CAPABLE, NOW, block, offering

BATCH = 50
PROVIDERS = 5
TIERS = (CapacityType.SPOT, CapacityType.ON_DEMAND)
OTHERS = ("A100", "H200", "B200", "L40S", "L4", "T4", "A10G", "RTX4090")
SHAPE = Shape(accelerator="H100", accelerator_count=1, cpu=Decimal(8), memory_gib=Decimal(64), disk_gb=50)


def price_list(provider: str, regions: list[str]) -> list[Offering]:
    """Per tier and region one H100, and a row of each other type, as on a long real list."""
    rows = []
    for tier in TIERS:
        for number, region in enumerate(regions):
            price = f"{2 + number / 100:.2f}"
            rows.append(offering(provider, price=price, capacity_type=tier, regions=(region,)))
        rows += [offering(provider, other, "1.00", capacity_type=tier) for other in OTHERS]
    return rows


def scene(candidates: int, strategy: Strategy) -> tuple[NodePool, list[ProviderSupply], list[Block]]:
    """A pool with that many candidates, half of the first tier blocked."""
    per_provider = candidates // (PROVIDERS * len(TIERS))
    regions = [f"region-{number}" for number in range(per_provider)]
    sets = tuple(RegionSet(label=region, ids=(region,)) for region in regions)
    entries = tuple(
        ProviderEntry(name=f"p{number}", weight=number + 1, regions=tuple(regions)) for number in range(PROVIDERS)
    )
    pool = NodePool(
        name="bench", providers=entries, capacity_types=TIERS, strategy=strategy, max_price_per_hour=Decimal(100)
    )
    supplies = [
        ProviderSupply(
            entry, capabilities=CAPABLE, catalogue=Catalogue(price_list(entry.name, regions)), region_sets=sets
        )
        for entry in entries
    ]
    blocks = [
        block(entry.name, shape=str(SHAPE), capacity_type="Spot", region=region)
        for entry in entries
        for region in regions[::2]
    ]
    return pool, supplies, blocks


def timed(call: Callable[[], object], repeats: int) -> list[float]:
    """Processor milliseconds of each call (nothing in it waits); a pause between batches spreads slow moments."""
    taken = []
    for number in range(repeats):
        if number % BATCH == 0:
            time.sleep(0.02)
        began = time.thread_time()
        call()
        taken.append((time.thread_time() - began) * 1000)
    return taken


def measure(candidates: int, strategy: Strategy, *, cold: bool, repeats: int) -> dict[str, Any]:
    """One line of the table."""
    pool, supplies, blocks = scene(candidates, strategy)
    wish = PlacementRequest(shape=SHAPE, claim_id="0" * 32, budget_left=Decimal(50))

    def warm_call() -> object:
        return decide(wish, pool, supplies, blocks, {"p0": 3, "p1": 5}, NOW)

    def cold_call() -> object:
        fresh = [
            ProviderSupply(s.entry, capabilities=s.capabilities, catalogue=Catalogue(rows), region_sets=s.region_sets)
            for s, rows in zip(supplies, lists, strict=True)
        ]
        return decide(wish, pool, fresh, blocks, {"p0": 3, "p1": 5}, NOW)

    lists = [price_list(supply.name, [s.label for s in supply.region_sets]) for supply in supplies]
    call = cold_call if cold else warm_call
    decision = decide(wish, pool, supplies, blocks, {}, NOW)
    timed(call, 20)
    taken = sorted(timed(call, repeats))
    return {
        "candidates": len(decision.verdicts),
        "strategy": str(strategy),
        "start": "cold" if cold else "warm",
        "median_ms": round(statistics.median(taken), 4),
        "p95_ms": round(taken[int(len(taken) * 0.95)], 4),
    }


def run(repeats: int = 400) -> dict[str, Any]:
    """Measure every line: 100 and 1,000 candidates, each strategy, warm and cold.

    ``first_ms`` is the very first decision of the process, which pays for what no later one does.
    """
    pool, supplies, blocks = scene(100, Strategy.ORDERED)
    began = time.perf_counter()
    decide(PlacementRequest(shape=SHAPE, claim_id="0" * 32), pool, supplies, blocks, {}, NOW)
    first = (time.perf_counter() - began) * 1000
    lines = [
        measure(candidates, strategy, cold=cold, repeats=repeats if candidates <= 100 else max(1, repeats // 4))
        for candidates in (100, 1000)
        for strategy in Strategy
        for cold in (False, True)
    ]
    return {"first_ms": round(first, 3), "lines": lines}
