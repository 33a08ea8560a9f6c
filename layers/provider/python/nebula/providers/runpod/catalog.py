"""What RunPod sells: the live catalog, kept a few minutes, and the shipped list when it cannot be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from threading import Lock
from typing import Any

from nebula.catalog import loader
from nebula.clock import Clock
from nebula.domain.candidate import CapacityType
from nebula.domain.offering import Offering
from nebula.providers.base import OfferingList
from nebula.providers.errors import ProviderError
from nebula.providers.runpod.client import RunPodClient
from nebula.providers.runpod.translate import COMMUNITY, DEFAULT_DISK_GB, SECURE

HOURS_PER_MONTH = 730
DISK_PRICE_PER_GB_HOUR = (Decimal("0.10") / HOURS_PER_MONTH).quantize(Decimal("1e-10"))
"""Container disk of a running pod: $0.10 per GB and month (RunPod docs, pods/pricing)."""

FRESH_FOR = timedelta(minutes=3)
ASK_AGAIN_AFTER = timedelta(minutes=1)
NONE_LEFT = "NONE"
_LEAST = Decimal("0.001")

Row = Mapping[str, Any]


class RunPodCatalog:
    """Offerings of one account. Thread-safe; a warm process asks RunPod once in ``FRESH_FOR``."""

    def __init__(self, client: RunPodClient, clock: Clock, *, default_disk_gb: int = DEFAULT_DISK_GB) -> None:
        self._client = client
        self._clock = clock
        self._disk = {"disk_price_per_gb_hour": DISK_PRICE_PER_GB_HOUR, "default_disk_gb": default_disk_gb}
        self._lock = Lock()
        self._kept: OfferingList | None = None
        self._keep_until: datetime | None = None
        self._canonical = {row.instance_type: row.accelerator for row in loader.load("runpod") if row.accelerator}

    def offerings(self) -> OfferingList:
        """Live offerings, else the shipped ones with the reason in ``note``. Never raises a ``ProviderError``."""
        with self._lock:
            now = self._clock.now()
            if self._kept is None or self._keep_until is None or now >= self._keep_until:
                self._kept = self._read(now)
                live = self._kept.source == "live"
                self._keep_until = self._clock.now() + (FRESH_FOR if live else ASK_AGAIN_AFTER)
            return self._kept

    def flavor(self, flavor_id: str) -> Offering | None:
        """The CPU flavor of this id, as offered now."""
        rows = self.offerings().offerings
        return next((row for row in rows if row.instance_type == flavor_id and row.accelerator is None), None)

    def known_data_centers(self) -> frozenset[str]:
        """Data centers that the kept live catalog names; asks nobody."""
        with self._lock:
            kept = self._kept
        if kept is None:
            return frozenset()
        return frozenset(center for row in kept.offerings for center in row.regions)

    def _read(self, now: datetime) -> OfferingList:
        try:
            secure = self._client.gpu_types(SECURE)
            community = self._client.gpu_types(COMMUNITY)
            cpus = self._client.cpu_types()
        except ProviderError as error:
            return self._shipped(f"the live catalog could not be read: {error}")
        rows = [
            *self._each(secure, lambda row: self._gpu(row, SECURE, now)),
            *self._each(community, lambda row: self._gpu(row, COMMUNITY, now)),
            *self._each(cpus, lambda row: self._cpu(row, now)),
        ]
        if not rows:
            return self._shipped("the live catalog sells nothing that could be read")
        return OfferingList(offerings=tuple(rows), source="live")

    def _shipped(self, note: str) -> OfferingList:
        rows = (row.offering("runpod", **self._disk) for row in loader.load("runpod"))  # type: ignore[arg-type]
        return OfferingList(offerings=tuple(row for row in rows if row is not None), source="catalog", note=note)

    @staticmethod
    def _each(rows: list[dict[str, Any]], read: Callable[[Row], Offering | None]) -> list[Offering]:
        return [offering for offering in map(read, rows) if offering is not None]

    def _gpu(self, row: Row, cloud: str, now: datetime) -> Offering | None:
        """One lane of a GPU type. The flag decides whether it is sold: a closed lane may carry a price."""
        lane = cloud.lower()
        price = _price(_member(row, "price", lane))
        gpu_id = row.get("id")
        if row.get(lane) is not True or price is None or not (isinstance(gpu_id, str) and gpu_id):
            return None
        return self._offering(
            row,
            now,
            instance_type=gpu_id,
            accelerator=self._canonical.get(gpu_id) or _canonical_of(row, gpu_id),
            accelerator_count=1,
            max_count=_count(_member(row, "maxCount", lane)),
            price_per_hour=price,
            parameters={"cloud": cloud},
            by_default=cloud == SECURE,
        )

    def _cpu(self, row: Row, now: datetime) -> Offering | None:
        price = _price(_member(row, "price", "securePerVcpu"))
        ratio = _price(row.get("ramGbPerVcpu"))
        flavor_id = row.get("id")
        if price is None or ratio is None or not (isinstance(flavor_id, str) and flavor_id):
            return None
        least = max(2, _count(_member(row, "vcpu", "min")) or 2)
        return self._offering(
            row,
            now,
            instance_type=flavor_id,
            accelerator=None,
            accelerator_count=0,
            max_count=_count(_member(row, "vcpu", "max")),
            memory_gib_per_vcpu=ratio,
            min_vcpus=1 << (least - 1).bit_length(),
            price_per_hour=price,
        )

    def _offering(self, row: Row, now: datetime, **fields: Any) -> Offering:
        centers = [one for one in _list(row.get("dataCenters")) if isinstance(one, dict)]
        named = [(one.get("id"), one.get("availability")) for one in centers]
        stocked = tuple(i for i, level in named if isinstance(i, str) and level != NONE_LEFT)
        return Offering(
            provider="runpod",
            per_accelerator=True,
            capacity_type=CapacityType.ON_DEMAND,
            available=row.get("availability") != NONE_LEFT,
            regions=tuple(i for i, _ in named if isinstance(i, str)),
            available_regions=stocked if centers else None,
            source="live",
            as_of=now,
            **self._disk,
            **fields,
        )


def _canonical_of(row: Row, gpu_id: str) -> str:
    """A type for an id that the shipped list does not know: its name with dashes (``RTX-6090``).

    The whole name, so that a slice of a card is never taken for the card.
    """
    name = row.get("name")
    return re.sub(r"[^A-Z0-9]+", "-", (name if isinstance(name, str) and name else gpu_id).upper()).strip("-")


def _price(value: Any) -> Decimal | None:
    """An amount that can be meant as USD per hour, else None: nothing is rented for a tenth of a cent."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    amount = Decimal(value)
    return amount if amount.is_finite() and _LEAST <= amount < 1_000_000 else None


def _count(value: Any) -> int | None:
    usable = isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1_000_000
    return int(value) if usable else None


def _member(row: Row, outer: str, inner: str) -> Any:
    content = row.get(outer)
    return content.get(inner) if isinstance(content, dict) else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
