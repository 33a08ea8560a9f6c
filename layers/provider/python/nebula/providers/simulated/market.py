"""What the simulated provider sells and how much of it is left."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from nebula.domain.candidate import Candidate
from nebula.domain.offering import Offering
from nebula.providers.errors import NoCapacityError, UnsupportedAcceleratorError
from nebula.providers.simulated.machines import Machine

ANY = "*"


@dataclass(frozen=True)
class Sold:
    """The instance type that serves a request, and its USD per hour."""

    instance_type: str
    rate: Decimal


class Market:
    """Offerings and stock. Stock that was never limited does not run out."""

    def __init__(self, offerings: Iterable[Offering]) -> None:
        self.offerings = tuple(offerings)
        self._limits: dict[tuple[str, str, str], int] = {}

    def limit(self, machines: int, instance_type: str = ANY, capacity_type: str = ANY, region: str = ANY) -> None:
        """Let at most so many machines of a kind live at once; 0 is sold out."""
        self._limits[instance_type, capacity_type, region] = machines

    def restock(self) -> None:
        """Lift every limit."""
        self._limits.clear()

    def choose(self, candidate: Candidate, region: str, living: Iterable[Machine]) -> Sold:
        """The first of the candidate's instance types that is left.

        ``UnsupportedAcceleratorError`` when none of them is sold at all, ``NoCapacityError`` (one line
        per type in ``failures``) when all are taken.
        """
        offered = self._offered(candidate)
        if not offered:
            raise UnsupportedAcceleratorError(f"{candidate.shape} is not sold as {candidate.capacity_type}")
        rented = list(living) if self._limits else []
        failures = []
        for offering in offered:
            if self._left(offering.instance_type, candidate, region, rented):
                return Sold(offering.instance_type, _rate(offering, candidate))
            failures.append(f"{offering.instance_type}: no capacity in {region}")
        raise NoCapacityError(f"no {candidate.shape} left in {region}", code="no_capacity", failures=tuple(failures))

    def _offered(self, candidate: Candidate) -> list[Offering]:
        rows = [o for o in self.offerings if o.capacity_type is candidate.capacity_type]
        if not candidate.instance_types:
            return [o for o in rows if o.accelerator == candidate.shape.accelerator]
        by_type = {o.instance_type: o for o in rows}
        return [by_type[name] for name in candidate.instance_types if name in by_type]

    def _left(self, instance_type: str, candidate: Candidate, region: str, rented: list[Machine]) -> bool:
        wanted = (instance_type, str(candidate.capacity_type), region)
        for limited, most in self._limits.items():
            if not _covers(limited, wanted):
                continue
            taken = sum(_covers(limited, (m.instance_type, str(m.capacity_type), m.region)) for m in rented)
            if taken >= most:
                return False
        return True


def _covers(limited: tuple[str, str, str], wanted: tuple[str, str, str]) -> bool:
    return all(part in (ANY, word) for part, word in zip(limited, wanted, strict=True))


def _rate(offering: Offering, candidate: Candidate) -> Decimal:
    if offering.per_accelerator and candidate.shape.accelerator:
        return offering.price_per_hour * candidate.shape.accelerator_count
    return candidate.price.total
