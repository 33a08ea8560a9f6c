"""What a provider sells: one row per (instance type, tier), priced and dated."""

from collections.abc import Mapping
from decimal import Decimal

from pydantic import AwareDatetime, Field

from nebula.domain.base import StoredModel
from nebula.domain.candidate import CapacityType, Shape


class Offering(StoredModel):
    """One thing a provider sells.

    ``accelerator`` is the canonical type (None for CPU-only). When ``per_accelerator`` is true,
    ``price_per_hour`` is USD per hour for **one** accelerator (RunPod GPUs) or one vCPU (RunPod CPU
    flavors) and any count up to ``max_count`` can be had; otherwise it is the price of the whole
    instance with exactly ``accelerator_count`` accelerators (EC2). ``regions`` lists where it is
    sold (empty = not said). ``available`` is False only when the provider says that it has none.

    Where vCPUs are sold singly they come in powers of two from ``min_vcpus`` on (RunPod CPU flavors).
    ``default_disk_gb`` is what the provider adds and bills when the Pod asks for no disk.

    ``parameters`` are the pool parameters that the row is for (RunPod: ``cloud``); ``by_default`` says
    whether it also holds where the pool leaves them out.
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
    min_vcpus: int = Field(default=2, ge=1)
    default_disk_gb: int = Field(default=0, ge=0)
    parameters: dict[str, str] = Field(default_factory=dict)
    by_default: bool = True
    attributes: dict[str, str] = Field(default_factory=dict)
    source: str
    as_of: AwareDatetime

    def holds_for(self, parameters: Mapping[str, str]) -> bool:
        """Whether a pool entry with these parameters may use the row; values are compared without case."""
        return all(
            parameters[name].upper() == value.upper() if name in parameters else self.by_default
            for name, value in self.parameters.items()
        )

    def rented_vcpus(self, shape: Shape) -> int | None:
        """Count the vCPUs to rent for a CPU-only shape where they are sold singly; None when it cannot be had.

        Memory comes with the vCPUs (``memory_gib_per_vcpu``) and may be what decides.
        """
        ratio = self.memory_gib_per_vcpu
        needed = shape.cpu if not ratio else max(shape.cpu, shape.memory_gib / ratio)
        vcpus = self.min_vcpus
        while vcpus < needed:
            vcpus *= 2
        return vcpus if self.max_count is None or vcpus <= self.max_count else None

    def rented_disk_gb(self, shape: Shape) -> int:
        """Container disk (GB) that is rented for a shape."""
        return self.default_disk_gb if shape.disk_gb is None else shape.disk_gb
