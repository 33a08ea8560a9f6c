"""Instances with our mark that no claim wants: how old, how often seen, ended or only reported."""

from __future__ import annotations

from datetime import timedelta

import pytest
from nebula.domain.claim import Phase
from nebula.domain.instance import InstanceListing, Mark
from nebula.providers.errors import ProviderUnavailableError
from nebula.providers.simulated import Call
from nebula.workflows.observe import look
from nebula.workflows.orphans import SEEN_APART, UNCLAIMED_AGE, OrphanPolicy, OrphanReport, reap_orphans

from tests.support.mischief import claims, remark, running_pods, said
from tests.support.world import INSTALLATION, MINUTE, World, running

NOBODY = Mark(installation=INSTALLATION, claim_id="f" * 32, attempt=1)
MINUTES = int(UNCLAIMED_AGE / timedelta(minutes=1))


def _unclaimed(world: World) -> str:
    """An instance of ours that no claim ever knew."""
    made = world.simulated.console.add_foreign()
    remark(world, made, mark=NOBODY)
    return made


def _reap(world: World, *, terminate: bool = True) -> OrphanReport:
    """One judgement of what is listed now."""
    services = world.services("status_polling")
    seen = look(services, until=world.clock.now() + timedelta(minutes=1), extra_providers=["simulated"])
    return reap_orphans(services, seen, OrphanPolicy(terminate=terminate), until=world.clock.now() + MINUTE)


def test_an_unclaimed_instance_is_left_alone_while_it_is_young() -> None:
    world = World()
    orphan = _unclaimed(world)
    world.run(MINUTES - 1)
    assert world.billed() == [orphan]
    assert said(world, "orphans") == []


def test_an_old_unclaimed_instance_is_ended() -> None:
    world = World()
    orphan = _unclaimed(world)
    world.run(MINUTES + 2)
    assert world.billed() == []
    assert said(world, "orphans")[0] == {"instances": [orphan], "of": 1, "terminated": [orphan]}


def test_one_look_is_never_enough_however_old_it_is() -> None:
    world = World()
    _unclaimed(world)
    world.clock.advance(timedelta(days=1))
    assert _reap(world) == OrphanReport()
    world.clock.advance(SEEN_APART - timedelta(seconds=1))
    assert _reap(world) == OrphanReport()
    world.clock.advance(timedelta(seconds=1))
    assert len(_reap(world).terminated) == 1


@pytest.mark.parametrize("ahead", [timedelta(hours=8), timedelta(days=365_000)])
def test_a_provider_whose_clock_is_ahead_keeps_no_orphan_young(
    ahead: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    orphan = _unclaimed(world)
    listed, made_at = world.simulated.list_instances, world.clock.now() + ahead

    def ahead_of_us() -> InstanceListing:
        found = listed()
        dated = tuple(one.model_copy(update={"created_at": made_at}) for one in found.instances)
        return InstanceListing(began_at=found.began_at, instances=dated, complete_scopes=found.complete_scopes)

    monkeypatch.setattr(world.simulated, "list_instances", ahead_of_us)
    world.run(MINUTES)
    assert world.billed() == [orphan]
    world.run(2)
    assert world.billed() == []


def test_report_names_it_each_minute_and_ends_nothing() -> None:
    world = World()
    orphan = _unclaimed(world)
    world.clock.advance(UNCLAIMED_AGE)
    for _ in range(4):
        world.minute(terminate=False)
    assert world.billed() == [orphan]
    assert world.simulated.script.counts[Call.TERMINATE] == 0
    assert world.telemetry.total("OrphanInstances") == 3


def test_foreign_instances_are_counted_and_never_touched() -> None:
    world = World()
    for _ in range(3):
        world.simulated.console.add_foreign()
    world.clock.advance(timedelta(days=2))
    world.run(3)
    assert said(world, "swept")[-1]["foreign"] == 3
    assert len(world.simulated.console.living()) == 3
    assert world.simulated.script.counts[Call.TERMINATE] == 0


def test_another_installation_s_instances_are_foreign() -> None:
    world = World()
    other = _unclaimed(world)
    remark(world, other, mark=NOBODY.model_copy(update={"installation": "another"}))
    world.clock.advance(timedelta(days=2))
    world.run(3)
    assert world.billed() == [other]
    assert said(world, "swept")[-1]["foreign"] == 1


def test_an_instance_of_a_claim_that_is_over_goes_when_seen_twice_however_young() -> None:
    world = World()
    running_pods(world, 1)
    claim = claims(world)[0]
    world.delete_pod("train-0")
    world.pump()
    world.tick()
    assert claims(world) == []
    late = world.simulated.console.add_foreign()
    remark(world, late, mark=claim.mark(INSTALLATION))
    world.run(2)
    assert world.billed() == []


def test_an_instance_of_an_earlier_attempt_is_an_orphan_beside_a_live_claim() -> None:
    world = World()
    names = running_pods(world, 1)
    claim = claims(world)[0]
    extra = world.simulated.console.add_foreign()
    remark(world, extra, mark=claim.mark(INSTALLATION).model_copy(update={"attempt": 9}))
    world.run(2)
    assert world.billed() == [claim.instance_id]
    assert running(world.pod(names[0]))


def test_a_delete_that_is_not_accepted_is_asked_for_again() -> None:
    world = World()
    orphan = _unclaimed(world)
    world.clock.advance(UNCLAIMED_AGE)
    world.simulated.script.fail(Call.TERMINATE, ProviderUnavailableError("cut"), times=2)
    world.run(3)
    assert said(world, "orphan not terminated")[0]["instance_id"] == orphan
    world.run(2)
    assert world.billed() == []


def test_an_instance_whose_claim_waits_for_its_id_is_no_orphan() -> None:
    world = World()
    world.simulated.script.fail(Call.PROVISION, ProviderUnavailableError("lost"), after=True)
    world.simulated.script.fail(Call.FIND, ProviderUnavailableError("cut"), times=100)
    world.create_pod()
    world.pump()
    assert claims(world)[0].phase is Phase.PROVISIONING
    world.run(3)
    assert len(world.billed()) == 1
    assert said(world, "orphans") == []


def test_nothing_is_an_orphan_while_its_provider_does_not_answer() -> None:
    world = World()
    orphan = _unclaimed(world)
    world.simulated.script.fail(Call.LIST, ProviderUnavailableError("cut"), times=1000)
    world.run(MINUTES * 2)
    assert world.billed() == [orphan]


@pytest.mark.parametrize("shown", [0, 1])
def test_what_a_broken_list_shows_is_judged_and_what_it_hides_is_not(shown: int) -> None:
    world = World()
    world.simulated.scopes = ("", "us")
    _unclaimed(world)
    world.simulated.break_listing(shown=shown)
    world.run(MINUTES + 3)
    assert len(world.billed()) == 1 - shown
