"""Short builders of what placement is decided from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from nebula.domain.candidate import CapacityType, Shape
from nebula.domain.nodepool import NodePool, ProviderEntry
from nebula.domain.offering import Offering
from nebula.placement.catalogue import Catalogue
from nebula.placement.request import PlacementRequest, ProviderSupply
from nebula.providers.base import Capabilities, RegionSet
from nebula.stores.blocks import Block

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
H100 = Shape(accelerator="H100", accelerator_count=1)
CAPABLE = Capabilities(
    capacity_types=frozenset(CapacityType), cpu_only=True, ingress_authentication=True, reports_exit_code=True
)


def offering(provider: str = "one", accelerator: str | None = "H100", price: str = "2.00", **fields: Any) -> Offering:
    """One GPU type sold singly, on demand, everywhere, dated today, unless ``fields`` say otherwise."""
    defaults: dict[str, Any] = {
        "provider": provider,
        "instance_type": f"{provider}-{accelerator or 'cpu'}",
        "accelerator": accelerator,
        "accelerator_count": 1 if accelerator else 0,
        "per_accelerator": True,
        "max_count": 8 if accelerator else 32,
        "capacity_type": CapacityType.ON_DEMAND,
        "price_per_hour": Decimal(price),
        "source": "test list",
        "as_of": NOW,
    }
    return Offering(**(defaults | fields))


def pool(*entries: str | ProviderEntry, **fields: Any) -> NodePool:
    """A NodePool over the named providers, on demand only."""
    providers = tuple(ProviderEntry(name=e) if isinstance(e, str) else e for e in entries) or (
        ProviderEntry(name="one"),
    )
    return NodePool(**({"name": "pool", "providers": providers, "capacity_types": (CapacityType.ON_DEMAND,)} | fields))


def supply(
    entry: str | ProviderEntry = "one",
    offerings: Sequence[Offering] | None = None,
    *,
    regions: Sequence[RegionSet] = (RegionSet(label="any"),),
    capabilities: Capabilities = CAPABLE,
    **fields: Any,
) -> ProviderSupply:
    """A configured provider; it sells one H100 unless told otherwise."""
    known = entry if isinstance(entry, ProviderEntry) else ProviderEntry(name=entry)
    rows = (offering(known.name),) if offerings is None else offerings
    return ProviderSupply(
        known, capabilities=capabilities, catalogue=Catalogue(rows), region_sets=tuple(regions), **fields
    )


def request(shape: Shape = H100, **fields: Any) -> PlacementRequest:
    """A request for one H100 unless told otherwise."""
    return PlacementRequest(shape=shape, **({"claim_id": "0" * 32} | fields))


def block(provider: str = "one", seconds: int = 30, **fields: Any) -> Block:
    """A block of a whole provider from now on, unless ``fields`` narrow it."""
    defaults = {"reason": "NoCapacity", "created_at": NOW, "expires_at": NOW + timedelta(seconds=seconds)}
    return Block(provider=provider, **(defaults | fields))
