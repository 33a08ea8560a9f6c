"""What a provider sells: one row per (instance type, tier), priced and dated."""

from __future__ import annotations

from decimal import Decimal

from pydantic import AwareDatetime, Field

from nebula.domain.base import StoredModel
from nebula.domain.candidate import CapacityType


class Offering(StoredModel):
    """One thing a provider sells.

    ``accelerator`` is the canonical type (None for CPU-only). When ``per_accelerator`` is true,
    ``price_per_hour`` is USD per hour for **one** accelerator (RunPod GPUs) or one vCPU (RunPod CPU
    flavors) and any count up to ``max_count`` can be had; otherwise it is the price of the whole
    instance with exactly ``accelerator_count`` accelerators (EC2). ``regions`` lists where it is
    sold (empty = not said). ``available`` is False only when the provider says that it has none.
    """

    provider: str
    instance_type: str
    accelerator: str | None
    accelerator_count: int = Field(default=1, ge=0)
    per_accelerator: bool = False
    max_count: int | None = None
    memory_gib_per_vcpu: Decimal | None = None
    vcpu: Decimal | None = None
    memory_gib: Decimal | None = None
    capacity_type: CapacityType
    price_per_hour: Decimal
    disk_price_per_gb_hour: Decimal = Decimal(0)
    regions: tuple[str, ...] = ()
    available_regions: tuple[str, ...] | None = None
    available: bool = True
    attributes: dict[str, str] = Field(default_factory=dict)
    source: str
    as_of: AwareDatetime
