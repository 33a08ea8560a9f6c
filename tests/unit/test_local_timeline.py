"""The demo's timeline says each thing once, when it is so."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

from nebula.domain.candidate import Candidate, CapacityType, Price
from nebula.domain.claim import Attempt, AttemptOutcome, Claim, Phase, TerminationReason

from local.timeline import Timeline, View
from tests.support.claims import NOW, SHAPE, placed


def _candidate(region: str) -> Candidate:
    price = Price(total=Decimal("3.2900"), source="live")
    return Candidate(
        provider="runpod",
        region=region,
        capacity_type=CapacityType.ON_DEMAND,
        shape=SHAPE,
        instance_types=("NVIDIA H100 NVL",),
        price=price,
        reserve_per_hour=price.total,
    )


def _attempt(number: int, region: str, **changes: Any) -> Attempt:
    return Attempt(
        number=number, candidate=_candidate(region), started_at=NOW, lease_until=NOW + timedelta(minutes=2), **changes
    )


def _claim(phase: Phase, *, attempts: tuple[Attempt, ...] = (), region: str = "US", **changes: Any) -> Claim:
    fields: dict[str, Any] = {
        "candidate": _candidate(region),
        "message": "cheapest of 2",
        "attempts": attempts,
    } | changes
    return placed(phase=phase, **fields)


def _pod(*, gated: bool = True, annotations: dict[str, str] | None = None, phase: str = "Pending") -> dict[str, Any]:
    gates = [{"name": "nebula.inftyai.com/provider-selection"}] if gated else []
    return {
        "metadata": {"annotations": annotations or {}},
        "spec": {"schedulingGates": gates},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def _lines(*views: View) -> list[str]:
    lines: list[str] = []
    timeline = Timeline(write=lines.append)
    for view in views:
        timeline.note("p", view)
    return [" ".join(line.split()[1:]) for line in lines]


def _view(claim: Claim | None, pod: dict[str, Any] | None, *instances: str) -> View:
    return View(pod, claim, frozenset(instances))


def test_what_did_not_change_is_not_said_again() -> None:
    view = _view(_claim(Phase.PLACED), _pod())
    assert _lines(view, view, view) == _lines(view)


DECISION = (
    "runpod EU $3.99: rank 2",
    "runpod AP $4.99: price_above_maximum: $4.99/h is above maxPricePerHour $4.00/h",
)


def test_a_placement_shows_place_price_source_and_reason_and_what_was_not_taken() -> None:
    lines = _lines(_view(_claim(Phase.PLACED, decision=DECISION), _pod()))
    assert lines[0] == "p placed runpod US OnDemand, NVIDIA H100 NVL, $3.2900/h (live)"
    assert lines[1] == "p next runpod EU $3.99: rank 2"
    assert lines[2] == "p not runpod AP $4.99: price_above_maximum: $4.99/h is above maxPricePerHour $4.00/h"
    assert lines[3] == "p gated waits behind nebula.inftyai.com/provider-selection"


def test_a_refusal_and_the_failover_after_it_are_shown() -> None:
    refused = _attempt(1, "US", outcome=AttemptOutcome.REFUSED, detail="no instances available")
    lines = _lines(_view(_claim(Phase.PLACED, attempts=(refused,), region="EU"), _pod()))
    assert "p refused runpod US OnDemand: no instances available" in lines
    assert "p failover behind the gate, to runpod EU OnDemand" in lines


def test_a_failover_that_no_look_saw_standing_is_shown_all_the_same() -> None:
    attempts = (
        _attempt(1, "US", outcome=AttemptOutcome.REFUSED, detail="no instances available"),
        _attempt(2, "EU", outcome=AttemptOutcome.CREATED, instance_id="i2"),
    )
    lines = _lines(_view(_claim(Phase.RELEASED, attempts=attempts, region="EU"), _pod(gated=False), "i2"))
    words = [line.split()[1] for line in lines]
    assert words == ["placed", "creating", "refused", "failover", "placed", "creating", "created"]


def test_an_endpoint_is_shown_only_where_the_pod_has_one() -> None:
    annotations = {"nebula.inftyai.com/instance-id": "i1", "nebula.inftyai.com/price-per-hour": "3.29"}
    closed = _lines(_view(None, _pod(gated=False, annotations=annotations)))
    assert closed == ["p released as i1 at $3.29/h"]
    opened = _pod(gated=False, annotations=annotations | {"nebula.inftyai.com/endpoint": "https://i1-80"})
    assert "p endpoint https://i1-80" in _lines(_view(None, opened))


def test_the_end_is_shown_when_it_is_confirmed() -> None:
    made = _attempt(1, "US", outcome=AttemptOutcome.CREATED, instance_id="i1")
    gone = _attempt(1, "US", outcome=AttemptOutcome.GONE, instance_id="i1")
    ending = {"termination_reason": TerminationReason.POD_DELETED}
    lines = _lines(
        _view(_claim(Phase.RELEASED, attempts=(made,)), _pod(gated=False, phase="Running"), "i1"),
        _view(_claim(Phase.TERMINATING, attempts=(made,), **ending), _pod(gated=False, phase="Running"), "i1"),
        _view(_claim(Phase.TERMINATED, attempts=(gone,), **ending), None),
    )
    assert [line.split()[1] for line in lines[:2]] == ["placed", "creating"]
    assert lines[2:] == [
        "p created instance i1 exists",
        "p Running ready",
        "p reclaiming PodDeleted: the instance is given back",
        "p gone i1 at runpod US OnDemand",
        "p closed every attempt is confirmed gone; the claim holds nothing",
        "p gone the Pod is deleted",
    ]
