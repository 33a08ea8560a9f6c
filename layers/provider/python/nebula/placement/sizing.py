"""What an offering costs for a shape: the whole hourly price, in its parts.

Price = accelerators + CPU where it is billed + container disk (docs/placement.md). An offering either
sells any number of accelerators (or vCPUs) at a price each, or a whole machine at one price.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from nebula.domain.candidate import Price, Shape
from nebula.domain.offering import Offering

ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class Quote:
    """One instance type at the whole hourly price of one shape, USD per hour.

    ``regions`` are the provider's ids where it is sold (empty: not said); ``available_regions``
    where it is in stock (None: not said).
    """

    instance_type: str
    total: Decimal
    gpus: Decimal
    cpu: Decimal
    disk: Decimal
    source: str
    as_of: datetime
    available: bool
    regions: frozenset[str]
    available_regions: frozenset[str] | None

    def sold_in(self, wanted: frozenset[str]) -> bool:
        """Whether it is sold in one of the wanted regions; what is not said is not held against it."""
        return not wanted or not self.regions or not self.regions.isdisjoint(wanted)

    def available_in(self, wanted: frozenset[str]) -> bool:
        """Whether the provider does not deny having one in the wanted regions now."""
        if not self.available:
            return False
        if self.available_regions is None:
            return True
        return not self.available_regions.isdisjoint(wanted) if wanted else bool(self.available_regions)

    def price(self) -> Price:
        """The same as the ledger keeps it."""
        return Price(
            total=self.total, gpus=self.gpus, cpu=self.cpu, disk=self.disk, source=self.source, as_of=self.as_of
        )


def counts_of(offering: Offering, shape: Shape) -> tuple[int, ...]:
    """The accelerator counts, not below the shape's, in which the offering can be had (0: CPU-only)."""
    if shape.accelerator is None:
        return (0,)
    if not offering.per_accelerator:
        return (offering.accelerator_count,) if offering.accelerator_count >= shape.accelerator_count else ()
    enough = offering.max_count is None or shape.accelerator_count <= offering.max_count
    return (shape.accelerator_count,) if enough else ()


def quote(offering: Offering, shape: Shape, count: int) -> Quote | None:
    """Price the offering for the shape with ``count`` accelerators; None when CPU or memory do not fit.

    A price of nothing or less is a mistake of its source, and would win every ranking: None too.
    """
    if offering.price_per_hour <= 0:
        return None
    cpu = gpus = ZERO
    if shape.accelerator is None and offering.per_accelerator:
        vcpus = offering.rented_vcpus(shape)
        if vcpus is None:
            return None
        cpu = offering.price_per_hour * vcpus
    elif not _holds(offering, shape, count):
        return None
    elif shape.accelerator is None:
        cpu = offering.price_per_hour
    else:
        gpus = offering.price_per_hour * (count if offering.per_accelerator else 1)
    disk = offering.disk_price_per_gb_hour * offering.rented_disk_gb(shape)
    return Quote(
        instance_type=offering.instance_type,
        total=gpus + cpu + disk,
        gpus=gpus,
        cpu=cpu,
        disk=disk,
        source=offering.source,
        as_of=offering.as_of,
        available=offering.available,
        regions=frozenset(offering.regions),
        available_regions=None if offering.available_regions is None else frozenset(offering.available_regions),
    )


def _holds(offering: Offering, shape: Shape, count: int) -> bool:
    """Whether vCPU and memory suffice; a list that does not tell them is not held against it."""
    times = count if offering.per_accelerator else 1
    if offering.vcpu is not None and offering.vcpu * times < shape.cpu:
        return False
    return offering.memory_gib is None or offering.memory_gib * times >= shape.memory_gib
