"""What ``--plan`` says is what the run does: the same outcomes, row by row."""

from __future__ import annotations

from datetime import timedelta

from nebula.credentials.policy import RetirementPolicies
from nebula.workflows.credential_report import plan_retirement
from nebula.workflows.lend import ensure_credential
from nebula.workflows.retire import RetirementReport
from nebula.workflows.retire_outcome import Kind

from tests.support.lending import PASSWORD, POLICY, Lending

WEEKS = timedelta(days=9)


def _unused(count: int) -> Lending:
    """So many passwords that were lent and are long past their time."""
    world = Lending()
    for number in range(count):
        key, pull = world.record(f"{PASSWORD}-{number}")
        ensure_credential(world.services(), world.provider, key, pull)
    world.clock.advance(WEEKS)
    return world


def _planned(world: Lending, limit: int = 50) -> RetirementReport:
    return plan_retirement(world.services(), RetirementPolicies(default=POLICY, limit=limit))


def _told(report: RetirementReport) -> set[tuple[str, str, str]]:
    return {(o.key, "Retired" if o.kind is Kind.PLANNED else str(o.kind), o.reason) for o in report.outcomes}


def test_the_plan_keeps_to_the_limit_of_one_run() -> None:
    world = _unused(4)
    plan = _planned(world, limit=3)
    assert len(plan.of(Kind.PLANNED)) == 3
    assert [o.reason for o in plan.of(Kind.DEFERRED)] == ["the limit of one run is reached"]
    assert _told(plan) == _told(world.retire(limit=3))


def test_the_plan_names_an_object_that_came_back_under_a_retired_row() -> None:
    world = _unused(1)
    world.retire()
    world.provider.add(world.row().key.object_name)
    plan = _planned(world)
    assert [o.reason for o in plan.of(Kind.PLANNED)] == ["its object had come back"]
    assert world.objects() == [world.row().key.object_name], "a plan deletes nothing"
    assert _told(plan) == _told(world.retire())
