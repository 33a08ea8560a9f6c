"""The real RunPod provider on the simulator, with a clock that only moves when told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from nebula.clock import ManualClock
from nebula.domain.candidate import Candidate, CapacityType, Price, Shape
from nebula.domain.instance import Mark
from nebula.domain.workload import PublishedPort, Workload
from nebula.http import HttpClient, Limits
from nebula.observability import MemoryTelemetry
from nebula.providers.base import ProvisionRequest
from nebula.providers.runpod import RunPodProvider, build
from pydantic import SecretStr

from local.runpod import Simulator
from local.runpod.adapter import BASE_URL, client_session
from local.runpod.faults import Failure

START = datetime(2026, 11, 1, 12, tzinfo=UTC)
SXM, NVL, PCIE = "NVIDIA H100 80GB HBM3", "NVIDIA H100 NVL", "NVIDIA H100 PCIe"
H100 = Shape(accelerator="H100", accelerator_count=1)
CPU_ONLY = Shape(cpu=Decimal(2), memory_gib=Decimal(4))
KEY = "rpa_test-key"
INSTALLATION = "test-installation"
NO_CAPACITY = (
    "There are no longer any instances available with the requested specifications. Please refresh and try again."
)


@dataclass
class RunPodWorld:
    """A provider, the account behind it and their common clock. ``slept`` collects the client's pauses."""

    clock: ManualClock = field(default_factory=lambda: ManualClock(START))
    telemetry: MemoryTelemetry = field(default_factory=MemoryTelemetry)
    slept: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.simulator = Simulator(self.clock.now)
        self.account = self.simulator.account
        self.provider = self.another()

    def another(self) -> RunPodProvider:
        """One more provider on the same account, as another warm process has it."""
        http = HttpClient(
            client_session(self.simulator), limits=Limits(), sleep=self.slept.append, monotonic=lambda: self.seconds()
        )
        return build(api_key=SecretStr(KEY), base_url=BASE_URL, clock=self.clock, telemetry=self.telemetry, http=http)

    def seconds(self) -> float:
        """The client's stopwatch, driven by the same clock."""
        return (self.clock.now() - START).total_seconds()

    def pass_time(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.advance(timedelta(seconds=seconds))

    def fail_create(self, status: int, detail: str, **more: Any) -> None:
        """The next create fails so."""
        self.simulator.fail(Failure(status, detail, method="POST", path="/v2/pods", **more))

    def calls(self, method: str, path: str) -> list[dict[str, Any]]:
        """The bodies of the calls made so far to a path (empty objects for calls without one)."""
        made = [one for one in self.account.requests if (one.method, one.path) == (method, path)]
        return [json.loads(one.body) if one.body else {} for one in made]

    def count(self, method: str, path: str = "") -> int:
        """Calls of a method to paths that begin so."""
        return sum(one.method == method and one.path.startswith(path) for one in self.account.requests)


def mark(number: int = 1, attempt: int = 1) -> Mark:
    """The mark of a numbered claim."""
    return Mark(installation=INSTALLATION, claim_id=f"{number:032x}", attempt=attempt)


def candidate(shape: Shape = H100, types: tuple[str, ...] = (SXM,), **more: Any) -> Candidate:
    """A candidate of RunPod."""
    fields: dict[str, Any] = {
        "provider": "runpod",
        "capacity_type": CapacityType.ON_DEMAND,
        "shape": shape,
        "instance_types": types,
        "price": Price(total=Decimal(1), source="test"),
        "reserve_per_hour": Decimal(1),
    }
    return Candidate(**fields | more)


def request(
    *,
    shape: Shape = H100,
    types: tuple[str, ...] = (SXM,),
    of: Mark | None = None,
    name: str = "default-web-00000001",
    image: str = "ghcr.io/acme/serve:1",
    env: Mapping[str, str] | None = None,
    ports: tuple[PublishedPort, ...] = (),
    registry: str | None = None,
    place: Mapping[str, Any] | None = None,
    **workload: Any,
) -> ProvisionRequest:
    """A provision request; ``place`` overrides fields of the candidate, the rest goes to the workload."""
    return ProvisionRequest(
        mark=of or mark(),
        name=name,
        candidate=candidate(**{"shape": shape, "types": types, **(place or {})}),
        workload=Workload(
            image=image,
            shape=shape,
            env={key: SecretStr(value) for key, value in (env or {}).items()},
            ports=ports,
            **workload,
        ),
        registry_credential_id=registry,
    )
