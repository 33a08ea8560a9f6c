"""The worked examples of ``docs/placement.md``, and the page with them filled in.

``python -m tests.support.placement_page`` rewrites the page; a test compares.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from nebula.clock import ManualClock
from nebula.domain.candidate import CapacityType
from nebula.domain.offering import Offering
from nebula.providers.base import Capabilities, Providers
from nebula.providers.simulated import DEFAULT_CAPABILITIES, SimulatedProvider
from nebula.stores.blocks import Block
from nebula.stores.memory_blocks import MemoryBlockStore
from nebula.stores.memory_claims import MemoryClaimStore
from nebula.workflows.explain import Scene, explain

from cli.offline import OfflineProviders
from cli.table import render
from tests.support.world import FixedProviders, pod_object

PAGE = Path(__file__).parents[2] / "docs" / "placement.md"
NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
BLOCKED = re.compile(r"(<!-- example: (?P<name>[a-z-]+) -->\n```text\n).*?(```\n)", re.DOTALL)


@dataclass
class Example:
    """One answer: a NodePool's spec, a Pod's changes, and what stands blocked."""

    spec: dict[str, Any]
    pod: dict[str, Any] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    providers: Providers | None = None

    def answer(self) -> str:
        """The table as the command prints it."""
        blocks = MemoryBlockStore()
        for block in self.blocks:
            blocks.put(block)
        scene = Scene(self.providers or providers(), blocks, MemoryClaimStore(), NOW)
        pool = {"kind": "NodePool", "metadata": {"name": "pool"}, "spec": self.spec}
        return render(explain(scene, pod_object("llm", **self.pod), pool))


def row(provider: str, price: str, *, tier: CapacityType = CapacityType.ON_DEMAND, **more: Any) -> Offering:
    """One H100 offering of an imaginary price list, read twelve days ago."""
    fields: dict[str, Any] = {
        "provider": provider,
        "instance_type": f"{provider}-h100",
        "accelerator": "H100",
        "accelerator_count": 1,
        "per_accelerator": True,
        "max_count": 8,
        "capacity_type": tier,
        "price_per_hour": Decimal(price),
        "source": "live",
        "as_of": NOW - timedelta(days=12),
    }
    return Offering(**(fields | more))


def providers() -> Providers:
    """Three imaginary providers: one cheap and simple, one with Spot and regions, one that sells eights only."""
    clock = ManualClock(NOW)
    simple: Capabilities = DEFAULT_CAPABILITIES.model_copy(
        update={"capacity_types": frozenset({CapacityType.ON_DEMAND}), "reports_exit_code": False}
    )
    spot = CapacityType.SPOT
    old: dict[str, Any] = {"as_of": NOW - timedelta(days=75), "source": "catalog"}
    return FixedProviders(
        SimulatedProvider(
            clock,
            name="alpha",
            capabilities=simple,
            offerings=[row("alpha", "2.39"), row("alpha", "3.29", instance_type="alpha-h100-sxm")],
        ),
        SimulatedProvider(
            clock,
            name="beta",
            per_region=True,
            offerings=[
                row("beta", "3.93", regions=("east", "west")),
                row("beta", "1.80", tier=spot, regions=("east",), available_regions=()),
                row("beta", "1.95", tier=spot, regions=("west",)),
            ],
        ),
        SimulatedProvider(
            clock,
            name="gamma",
            offerings=[row("gamma", "19.20", per_accelerator=False, accelerator_count=8, **old)],
        ),
    )


def shortage(provider: str, seconds: int, **fields: Any) -> Block:
    """A block or a pause that ends so many seconds from now."""
    expires = NOW + timedelta(seconds=seconds)
    return Block(provider=provider, created_at=NOW, expires_at=expires, **({"reason": "NoCapacity"} | fields))


ALL = [{"name": "alpha"}, {"name": "beta", "regions": ["east", "west"]}, {"name": "gamma"}]
TWO = {"limits": {"nvidia.com/gpu": "2"}, "requests": {"nvidia.com/gpu": "2"}}
SHAPE = "H100:1/cpu=0/mem=0Gi/disk=default"

EXAMPLES = {
    "tiers": Example({"providers": ALL, "capacityTypes": ["Spot", "OnDemand"], "strategy": "LowestPrice"}),
    "ordered": Example({"providers": ALL[:2], "capacityTypes": ["OnDemand"], "strategy": "Ordered"}),
    "shortage": Example(
        {"providers": ALL, "capacityTypes": ["OnDemand"], "strategy": "LowestPrice", "allowLargerShapes": True},
        blocks=[
            shortage("alpha", 24, shape=SHAPE, capacity_type="OnDemand", region="any", code="400"),
            shortage("beta", 9, kind="rate_limited", reason="RateLimited", code="429"),
        ],
    ),
    "deferred": Example(
        {"providers": ALL, "capacityTypes": ["OnDemand"], "maxPricePerHour": "3.00", "strategy": "LowestPrice"},
        pod={"restartPolicy": "Never"},
    ),
    "larger": Example(
        {"providers": [ALL[2]], "capacityTypes": ["OnDemand"], "allowLargerShapes": True},
        pod={"containers": [{"name": "main", "image": "vllm/vllm-openai:v1", "resources": TWO}]},
    ),
    "shipped": Example(
        {
            "providers": [
                {"name": "runpod", "regions": ["eu"], "parameters": {"cloud": "SECURE"}},
                {"name": "runpod", "regions": ["us"], "parameters": {"cloud": "COMMUNITY"}},
            ],
            "capacityTypes": ["OnDemand"],
            "strategy": "LowestPrice",
            "maxPricePerHour": "3.00",
        },
        providers=OfflineProviders(ManualClock(NOW)),
    ),
}


def filled(page: str) -> str:
    """The page with every example's answer in its place; KeyError for a name that is not one."""

    def answer(match: re.Match[str]) -> str:
        return f"{match[1]}{EXAMPLES[match['name']].answer()}\n{match[3]}"

    return BLOCKED.sub(answer, page)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
