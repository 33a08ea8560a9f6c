"""A candidate: one place where a Pod's shape could be rented, and what that would cost."""

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum

from pydantic import AwareDatetime, Field

from nebula.domain.base import StoredModel


class CapacityType(StrEnum):
    """Purchase model, in the words of the NodePool (``spec.capacityTypes``)."""

    SPOT = "Spot"
    ON_DEMAND = "OnDemand"


class Shape(StoredModel):
    """What is asked for: accelerator type and count, vCPU, memory (GiB) and disk (GB).

    ``accelerator`` is the canonical type in upper case (``H100``) or None for CPU-only; then
    ``accelerator_count`` is 0. Zero ``cpu``/``memory_gib`` and a ``disk_gb`` of None mean "no request".
    """

    accelerator: str | None = None
    accelerator_count: int = Field(default=0, ge=0)
    cpu: Decimal = Decimal(0)
    memory_gib: Decimal = Decimal(0)
    disk_gb: int | None = None

    def __str__(self) -> str:
        """Render as ``H100:8/cpu=4/mem=16Gi/disk=50GB``, the form used in block keys and messages."""
        head = f"{self.accelerator}:{self.accelerator_count}" if self.accelerator else "cpu-only"
        disk = "default" if self.disk_gb is None else f"{self.disk_gb}GB"
        return f"{head}/cpu={self.cpu.normalize():f}/mem={self.memory_gib.normalize():f}Gi/disk={disk}"

    def spoken(self) -> str:
        """Render for people, without what was not asked for: ``H100:8, 4 vCPU, 16 GiB, 50 GB disk``."""
        parts = [f"{self.accelerator}:{self.accelerator_count}" if self.accelerator else "CPU only"]
        if self.cpu:
            parts.append(f"{self.cpu.normalize():f} vCPU")
        if self.memory_gib:
            parts.append(f"{self.memory_gib.normalize():f} GiB")
        if self.disk_gb is not None:
            parts.append(f"{self.disk_gb} GB disk")
        return ", ".join(parts)


class Price(StoredModel):
    """USD per hour of the whole instance, with the parts it is made of and where they came from.

    ``as_of`` is when the price was read or published; None when the source gives no date.
    """

    total: Decimal
    gpus: Decimal = Decimal(0)
    cpu: Decimal = Decimal(0)
    disk: Decimal = Decimal(0)
    source: str
    as_of: AwareDatetime | None = None


class Candidate(StoredModel):
    """(provider, region or region set, tier, shape).

    ``regions`` is the provider's own region ids; empty means anywhere. ``instance_types`` are the
    provider ids that serve the shape, cheapest available first (RunPod GPU ids, EC2 instance types).
    ``price`` is the cheapest of them; ``reserve_per_hour`` the dearest it may end up on, which is what
    a budget must set aside.
    """

    provider: str
    regions: tuple[str, ...] = ()
    region: str = "any"
    capacity_type: CapacityType
    shape: Shape
    instance_types: tuple[str, ...] = ()
    price: Price
    reserve_per_hour: Decimal
    parameters: dict[str, str] = Field(default_factory=dict)

    @property
    def place(self) -> str:
        """Where, as blocks write it: the region, and the pool's parameters if any (``any[cloud=SECURE]``)."""
        return place_of(self.region, self.parameters)

    @property
    def key(self) -> str:
        """Stable identity for blocks and exclusions: ``provider/shape/tier/place``."""
        return f"{self.provider}/{self.shape}/{self.capacity_type}/{self.place}"


def place_of(region: str, parameters: Mapping[str, str]) -> str:
    """The region with the parameters that narrow it: two kinds of cloud are two places."""
    if not parameters:
        return region
    return f"{region}[{','.join(f'{name}={value}' for name, value in sorted(parameters.items()))}]"
