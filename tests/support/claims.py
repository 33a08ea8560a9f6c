"""Claims to store, shared by tests of the ledgers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from nebula.domain.candidate import Candidate, CapacityType, Price, Shape
from nebula.domain.claim import Attempt, AttemptOutcome, Claim, Phase, claim_id_for

NOW = datetime(2026, 11, 1, 12, 0, 0, 250_000, tzinfo=UTC)
SECOND = timedelta(seconds=1)
CLUSTER = "prod"
POOL = "gpus"
SHAPE = Shape(accelerator="H100", accelerator_count=8, cpu=Decimal("1.5"), memory_gib=Decimal(16), disk_gb=50)


def candidate(reserve: str = "2.50") -> Candidate:
    """A candidate that sets aside ``reserve`` USD per hour."""
    return Candidate(
        provider="simulated",
        regions=("a", "b"),
        region="a,b",
        capacity_type=CapacityType.SPOT,
        shape=SHAPE,
        instance_types=("sim-h100",),
        price=Price(total=Decimal("2.25"), gpus=Decimal("2.25"), source="catalog", as_of=NOW),
        reserve_per_hour=Decimal(reserve),
        parameters={"cloud": "SECURE"},
    )


def pending(name: str = "pod", **changes: object) -> Claim:
    """A claim that holds nothing of the budget."""
    cluster = str(changes.get("cluster", CLUSTER))
    claim = Claim(
        claim_id=claim_id_for(cluster, f"uid-{name}"),
        phase=Phase.PENDING,
        cluster=CLUSTER,
        namespace="default",
        pod_name=name,
        pod_uid=f"uid-{name}",
        node_pool=POOL,
        shape=SHAPE,
        created_at=NOW,
        updated_at=NOW,
        phase_since=NOW,
    )
    return claim.model_copy(update=changes)


def placed(name: str = "pod", reserve: str = "2.50", **changes: object) -> Claim:
    """A claim that holds ``reserve`` USD per hour."""
    return pending(name, **{"phase": Phase.PLACED, "candidate": candidate(reserve), **changes})


def attempt(number: int = 1, reserve: str = "2.50", **changes: object) -> Attempt:
    """One attempt; unknown outcome unless told."""
    made = Attempt(
        number=number, candidate=candidate(reserve), started_at=NOW, lease_until=NOW + timedelta(seconds=120)
    )
    return made.model_copy(update=changes)


def provisioned(name: str = "pod", instance_id: str = "i-1", reserve: str = "2.50", **changes: object) -> Claim:
    """A claim whose instance exists."""
    one = attempt(reserve=reserve, outcome=AttemptOutcome.CREATED, instance_id=instance_id)
    return placed(name, reserve, **{"phase": Phase.PROVISIONED, "attempts": (one,), **changes})


def terminated(claim: Claim) -> Claim:
    """The claim as it ends: every attempt gone."""
    gone = tuple(a.model_copy(update={"outcome": AttemptOutcome.GONE}) for a in claim.attempts)
    return claim.model_copy(update={"phase": Phase.TERMINATED, "attempts": gone, "next_action_at": None})
