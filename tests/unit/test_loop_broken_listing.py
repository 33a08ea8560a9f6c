"""A provider's list that breaks off on a later page: what it may and may not stop."""

from __future__ import annotations

from datetime import timedelta

import pytest
from nebula.domain.claim import Phase, TerminationReason
from nebula.providers.errors import ProviderUnavailableError
from nebula.providers.simulated import Behaviour, Call
from nebula.workflows.by_id import READS_PER_LOOK

from tests.support.mischief import all_ended, claims, running_pods
from tests.support.world import World, running


def _broken(count: int, *, shown: int = 0) -> tuple[World, list[str], list[str]]:
    """Running Pods whose provider's list breaks off for good; returns names and claim ids."""
    world = World()
    names = running_pods(world, count)
    ids = [claim.claim_id for claim in claims(world)]
    # A list of which not even the first page can be read would raise: one machine is always shown.
    world.simulated.break_listing(shown=max(shown, 1))
    return world, names, ids


def test_a_delete_is_confirmed_by_id_while_the_list_is_broken() -> None:
    world, names, ids = _broken(3)
    for name in names:
        world.delete_pod(name)
    world.pump()
    world.tick()
    assert all_ended(world, ids, TerminationReason.POD_DELETED)
    assert [world.pod(name) for name in names] == [None, None, None]


def test_reads_by_id_are_few_per_look_and_everybody_has_a_turn() -> None:
    count = READS_PER_LOOK + 15
    world, names, ids = _broken(count)
    for name in names:
        world.delete_pod(name)
    world.pump()
    world.simulated.script.counts.clear()
    world.tick()
    assert world.simulated.script.counts[Call.GET] == READS_PER_LOOK
    world.run(2)
    assert all_ended(world, ids, TerminationReason.POD_DELETED)


def test_an_instance_that_is_still_there_by_id_keeps_its_claim_open() -> None:
    world, names, _ = _broken(3)
    world.simulated.behaviour = Behaviour(termination=timedelta(minutes=3))
    for name in names:
        world.delete_pod(name)
    world.pump()
    world.tick()
    assert {claim.phase for claim in claims(world)} == {Phase.TERMINATING}
    world.run(4)
    assert claims(world) == []


def test_a_provider_that_answers_neither_list_nor_id_confirms_nothing() -> None:
    world, names, _ = _broken(2)
    world.simulated.script.fail(Call.GET, ProviderUnavailableError("cut"), times=10_000)
    for name in names:
        world.delete_pod(name)
    world.pump()
    world.run(3)
    assert {claim.phase for claim in claims(world)} == {Phase.TERMINATING}


def test_a_delete_that_was_not_accepted_is_not_asked_for_by_id() -> None:
    world, names, _ = _broken(2)
    world.simulated.script.fail(Call.TERMINATE, ProviderUnavailableError("cut"), times=10_000)
    world.simulated.script.counts.clear()
    for name in names:
        world.delete_pod(name)
    world.pump()
    world.run(2)
    assert world.simulated.script.counts[Call.GET] == 0
    assert {claim.phase for claim in claims(world)} == {Phase.TERMINATING}


def test_another_account_is_not_asked_by_id() -> None:
    world, names, _ = _broken(2)
    world.simulated.behaviour = Behaviour(termination=timedelta(hours=1))
    for name in names:
        world.delete_pod(name)
    world.pump()
    assert all(claim.attempts[-1].delete_accepted_at for claim in claims(world))
    world.simulated.account_id = "another"
    world.simulated.scopes = ("", "us")
    world.simulated.break_listing(shown=0)
    world.simulated.script.counts.clear()
    world.run(2)
    assert world.simulated.script.counts[Call.GET] == 0
    assert {claim.phase for claim in claims(world)} == {Phase.TERMINATING}


@pytest.mark.parametrize("shown", [1, 2])
def test_a_broken_list_changes_no_pod_and_alarms(shown: int) -> None:
    world, names, _ = _broken(3, shown=shown)
    before = [(world.pod(name) or {})["metadata"]["resourceVersion"] for name in names]
    world.run(3)
    assert [(world.pod(name) or {})["metadata"]["resourceVersion"] for name in names] == before
    assert all(running(world.pod(name)) for name in names)
    assert world.telemetry.total("SystemsUnknown") == 3


def test_one_failed_scope_of_two_is_one_unknown_system() -> None:
    world = World()
    world.simulated.scopes = ("eu", "us")
    world.simulated.break_listing("us")
    world.minute()
    assert world.telemetry.total("SystemsUnknown") == 1
