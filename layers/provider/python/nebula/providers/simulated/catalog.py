"""What the simulated provider sells unless told otherwise. The prices are made up."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from nebula.domain.candidate import CapacityType
from nebula.domain.offering import Offering

_AS_OF = datetime(2026, 1, 1, tzinfo=UTC)
_GPUS = (("sim-h100", "H100", "2.00"), ("sim-a100", "A100", "1.20"), ("sim-l4", "L4", "0.40"), ("sim-t4", "T4", "0.20"))
_SPOT_SHARE = Decimal("0.4")


def default_offerings(provider: str = "simulated") -> tuple[Offering, ...]:
    """Four GPUs per accelerator and CPUs per vCPU, on demand and as spot at 40 % of the price (USD/h)."""
    rows = []
    for tier, share in ((CapacityType.ON_DEMAND, Decimal(1)), (CapacityType.SPOT, _SPOT_SHARE)):
        rows += [_row(provider, kind, gpu, tier, Decimal(price) * share) for kind, gpu, price in _GPUS]
        rows.append(_row(provider, "sim-cpu", None, tier, Decimal("0.05") * share))
    return tuple(rows)


def _row(
    provider: str, instance_type: str, accelerator: str | None, tier: CapacityType, price_per_hour: Decimal
) -> Offering:
    return Offering(
        provider=provider,
        instance_type=instance_type,
        accelerator=accelerator,
        accelerator_count=1 if accelerator else 0,
        per_accelerator=True,
        max_count=8 if accelerator else 32,
        memory_gib_per_vcpu=None if accelerator else Decimal(4),
        capacity_type=tier,
        price_per_hour=price_per_hour,
        source="simulated",
        as_of=_AS_OF,
    )
