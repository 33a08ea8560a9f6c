"""What the simulated RunPod sells and how much of it is left, per type, data center and cloud.

Ids are real, prices of a 2026-08 snapshot. Stock is unlimited until it is set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from local.runpod.wire import ProblemError

CENTERS = {
    "US-TX-3": ("US Texas 3", "NORTH_AMERICA"),
    "US-KS-2": ("US Kansas 2", "NORTH_AMERICA"),
    "CA-MTL-1": ("CA Montreal 1", "NORTH_AMERICA"),
    "EU-RO-1": ("EU Romania 1", "EUROPE"),
    "EU-SE-1": ("EU Sweden 1", "EUROPE"),
    "EUR-IS-1": ("EU Iceland 1", "EUROPE"),
    "AP-JP-1": ("AP Japan 1", "ASIA"),
    "OC-AU-1": ("OC Australia 1", "OCEANIA"),
}
COUNTRIES = {"US": "US", "CA": "CA", "EU-RO": "RO", "EU-SE": "SE", "EUR-IS": "IS", "AP-JP": "JP", "OC-AU": "AU"}
NO_CAPACITY = (
    "There are no longer any instances available with the requested specifications. Please refresh and try again."
)


@dataclass(frozen=True)
class Gpu:
    """One GPU type: USD per GPU-hour per cloud, which clouds sell it, GPUs on the largest machine.

    ``vcpu`` and ``ram`` (GB) are what a host has per GPU: floors above them find no machine.
    """

    id: str
    name: str
    memory: int
    secure_price: float
    community_price: float = 0.0
    secure: bool = True
    community: bool = False
    max_count: int = 8
    vcpu: int = 16
    ram: int = 128
    manufacturer: str = "NVIDIA"

    def price(self, cloud: str) -> float:
        """USD per GPU-hour in a cloud."""
        return self.secure_price if cloud == "SECURE" else self.community_price

    def sold(self, cloud: str) -> bool:
        """Whether a cloud sells it; a closed lane may still carry a price."""
        return self.secure if cloud == "SECURE" else self.community


@dataclass(frozen=True)
class Flavor:
    """One CPU flavor: GB per vCPU and USD per vCPU-hour."""

    id: str
    name: str
    group: str
    ram_per_vcpu: float
    price: float
    least: int = 2
    most: int = 32


GPUS = (
    Gpu("NVIDIA H100 80GB HBM3", "H100 SXM", 80, 3.29, 2.69, community=True, vcpu=26, ram=251),
    Gpu("NVIDIA H100 NVL", "H100 NVL", 94, 3.19, 2.59, community=True),
    Gpu("NVIDIA H100 PCIe", "H100 PCIe", 80, 2.39, max_count=4),
    Gpu("NVIDIA H200", "H200 SXM", 141, 4.59, 3.59, community=True, vcpu=24, ram=251),
    Gpu("NVIDIA B200", "B200", 180, 6.79, 5.98),
    Gpu("NVIDIA A100-SXM4-80GB", "A100 SXM", 80, 1.59, 1.39, community=True),
    Gpu("NVIDIA A100 80GB PCIe", "A100 PCIe", 80, 1.39, 1.19, community=True),
    Gpu("NVIDIA L40S", "L40S", 48, 0.99, 0.79, community=True),
    Gpu("NVIDIA L4", "L4", 24, 0.49),
    Gpu("NVIDIA GeForce RTX 4090", "RTX 4090", 24, 0.74, 0.34, community=True),
    Gpu("NVIDIA RTX 5000 Ada Generation", "RTX 5000 Ada", 32, 0.0, 0.49, secure=False, community=True),
    Gpu("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000", 96, 2.09, 1.69, community=True),
    Gpu("NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb", "RTX PRO 6000 MIG 24GB", 24, 0.59, max_count=1),
    Gpu("AMD Instinct MI300X OAM", "MI300X", 192, 2.39, manufacturer="AMD"),
)
FLAVORS = (
    Flavor("cpu3c", "Compute-Optimized", "Gen 3", 2.0, 0.03),
    Flavor("cpu3g", "General Purpose", "Gen 3", 4.0, 0.04),
    Flavor("cpu3m", "Memory-Optimized", "Gen 3", 8.0, 0.05),
    Flavor("cpu5c", "Compute-Optimized", "Gen 5", 2.0, 0.035),
    Flavor("cpu5g", "General Purpose", "Gen 5", 4.0, 0.045),
    Flavor("cpu5m", "Memory-Optimized", "Gen 5", 8.0, 0.055),
)

Place = tuple[str, str, str]


@dataclass
class Market:
    """The catalog and the stock. ``advertised`` overrides the level shown, so that a hint can be wrong."""

    gpus: dict[str, Gpu] = field(default_factory=lambda: {gpu.id: gpu for gpu in GPUS})
    flavors: dict[str, Flavor] = field(default_factory=lambda: {flavor.id: flavor for flavor in FLAVORS})
    centers: dict[str, tuple[str, str]] = field(default_factory=lambda: dict(CENTERS))
    _stock: dict[Place, int] = field(default_factory=dict)
    _advertised: dict[str, str] = field(default_factory=dict)

    def set_stock(
        self,
        type_id: str | None,
        count: int | None,
        *,
        center: str | None = None,
        cloud: str | None = None,
        advertised: str | None = None,
    ) -> None:
        """Units left of a GPU type or CPU flavor (None: of all); ``count`` None is unlimited again.

        ``advertised`` is the level that the catalog shows instead of the true one.
        """
        types = [type_id] if type_id else [*self.gpus, *self.flavors]
        for one in types:
            for place in self._places(one, center, cloud):
                if count is None:
                    self._stock.pop(place, None)
                else:
                    self._stock[place] = count
            if advertised:
                self._advertised[one] = advertised
            else:
                self._advertised.pop(one, None)

    def take(self, content: dict[str, Any]) -> tuple[Place, int, float]:
        """Place a pod: where, how many units, USD per hour. Raises the capacity 400, 403s and the like never."""
        if "gpu" in content:
            type_id, units, price = self._gpu_request(content)
        else:
            type_id, units, price = self._cpu_request(content)
        cloud = content.get("cloud", "SECURE")
        for center in content.get("dataCenterIds") or self.centers:
            place = (type_id, center, cloud)
            if center in self.centers and self._left(place) >= units:
                if place in self._stock:
                    self._stock[place] -= units
                return place, units, price
        raise ProblemError(400, NO_CAPACITY)

    def give_back(self, place: Place, units: int) -> None:
        """Return what a terminated pod held."""
        if place in self._stock:
            self._stock[place] += units

    def level(self, type_id: str, units: int, cloud: str, centers: Sequence[str] | None = None) -> str:
        """NONE, LOW, MEDIUM or HIGH in some data centers (None: all)."""
        if type_id in self._advertised:
            return self._advertised[type_id]
        left = sum(self._left((type_id, center, cloud)) // units for center in centers or self.centers)
        return "NONE" if left < 1 else "LOW" if left < 4 else "MEDIUM" if left < 16 else "HIGH"

    def _gpu_request(self, content: dict[str, Any]) -> tuple[str, int, float]:
        wanted, cloud = content["gpu"], content.get("cloud", "SECURE")
        gpu = self.gpus.get(wanted["id"])
        count = wanted.get("count", 1)
        if gpu is None:
            # The real status and text for an unknown id are unknown.
            raise ProblemError(400, f'invalid GPU type id "{wanted["id"]}"')
        fits = wanted.get("minVcpuCountPerGpu", 1) <= gpu.vcpu and wanted.get("minRamPerGpu", 1) <= gpu.ram
        if not (gpu.sold(cloud) and count <= gpu.max_count and fits):
            raise ProblemError(400, NO_CAPACITY)
        return gpu.id, count, gpu.price(cloud) * count

    def _cpu_request(self, content: dict[str, Any]) -> tuple[str, int, float]:
        wanted = content["cpu"]
        flavor = self.flavors.get(wanted["id"])
        if flavor is None:
            raise ProblemError(400, f'invalid CPU flavor id "{wanted["id"]}"')
        if not flavor.least <= wanted["vcpuCount"] <= flavor.most:
            raise ProblemError(400, "cpu.vcpuCount is out of the flavor's range")
        return flavor.id, 1, flavor.price * wanted["vcpuCount"]

    def _left(self, place: Place) -> int:
        return self._stock.get(place, 1_000_000)

    def _places(self, type_id: str, center: str | None, cloud: str | None) -> list[Place]:
        clouds = [cloud] if cloud else ["SECURE", "COMMUNITY"]
        return [(type_id, one, lane) for one in ([center] if center else self.centers) for lane in clouds]
