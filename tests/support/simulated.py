"""Requests for the simulated provider, shared by tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from nebula.domain.candidate import Candidate, CapacityType, Price, Shape
from nebula.domain.instance import Mark
from nebula.domain.workload import Workload
from nebula.providers.base import ProvisionRequest
from nebula.providers.simulated import DEFAULT_CAPABILITIES, Behaviour, SimulatedProvider

START = datetime(2026, 11, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
SHAPE = Shape(accelerator="H100", accelerator_count=2)
#: Of a provider that may take long to make a machine: its Pod waits behind the gate until the machine runs.
QUEUES = DEFAULT_CAPABILITIES.model_copy(update={"queues": True})


def make_slowly(provider: SimulatedProvider, **behaviour: timedelta) -> None:
    """From now on it queues and behaves so (``boot=``, ``termination=``)."""
    provider._capabilities = provider.capabilities.model_copy(update={"queues": True})
    provider.behaviour = Behaviour(**behaviour)


def request_for(number: int = 1, *, claim: str = "c", region: str = "", **changes: object) -> ProvisionRequest:
    candidate = Candidate(
        provider="simulated",
        regions=(region,) if region else (),
        region=region or "any",
        capacity_type=CapacityType.ON_DEMAND,
        shape=SHAPE,
        instance_types=("sim-h100", "sim-a100"),
        price=Price(total=Decimal(4), source="simulated"),
        reserve_per_hour=Decimal(4),
    )
    fields: dict[str, object] = {
        "mark": Mark(installation="test", claim_id=claim, attempt=number),
        "name": "pod",
        "candidate": candidate,
        "workload": Workload(image="busybox", shape=SHAPE),
    }
    return ProvisionRequest.model_validate(fields | changes)
