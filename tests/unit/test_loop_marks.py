"""Whose instance it is: the mark says so, an id alone never does."""

from __future__ import annotations

from datetime import timedelta

from nebula.domain.claim import Attempt, Phase
from nebula.domain.instance import Instance, InstanceListing, InstanceState, Mark
from nebula.lifecycle.observation import absence_counts, is_strange, sighting

from tests.support.claims import NOW, attempt
from tests.support.mischief import claims, remark, running_pods, said
from tests.support.world import INSTALLATION, World, running

OURS = Mark(installation=INSTALLATION, claim_id="c", attempt=1)
MADE = attempt(instance_id="i-1", scope="")


def _listing(*instances: Instance, complete: bool = True) -> InstanceListing:
    scopes = frozenset({""}) if complete else frozenset()
    failed = {} if complete else {"": "cut"}
    return InstanceListing(
        began_at=NOW + timedelta(hours=1), instances=instances, complete_scopes=scopes, failed_scopes=failed
    )


def _seen(one: Attempt, listing: InstanceListing) -> tuple[bool, bool, bool]:
    """Sighted, strange, absent."""
    return (
        sighting(one, listing, INSTALLATION, "c") is not None,
        is_strange(one, listing, INSTALLATION, "c"),
        absence_counts(one, listing, timedelta(0)),
    )


def test_an_id_with_our_mark_is_ours() -> None:
    assert _seen(MADE, _listing(Instance(id="i-1", mark=OURS))) == (True, False, False)


def test_an_id_with_another_s_mark_is_neither_ours_nor_absent() -> None:
    theirs = OURS.model_copy(update={"installation": "another"})
    assert _seen(MADE, _listing(Instance(id="i-1", mark=theirs))) == (False, True, False)
    assert _seen(MADE, _listing(Instance(id="i-1", mark=theirs), complete=False)) == (False, True, False)


def test_an_id_with_another_attempt_s_mark_is_not_this_attempt_s() -> None:
    assert _seen(MADE, _listing(Instance(id="i-1", mark=OURS.model_copy(update={"attempt": 2})))) == (
        False,
        True,
        False,
    )


def test_an_id_without_a_mark_is_strange_only_where_the_list_tells_marks() -> None:
    assert _seen(MADE, _listing(Instance(id="i-1"))) == (False, True, False)
    assert _seen(MADE, _listing(Instance(id="i-1"), complete=False)) == (False, False, False)


def test_an_ended_instance_needs_no_mark() -> None:
    assert _seen(MADE, _listing(Instance(id="i-1", state=InstanceState.TERMINATED))) == (True, False, False)


def test_an_attempt_without_an_id_is_found_by_its_mark_alone() -> None:
    unknown = attempt(scope="")
    assert _seen(unknown, _listing(Instance(id="i-9", mark=OURS)))[:2] == (True, False)
    assert _seen(unknown, _listing(Instance(id="i-9"))) == (False, False, True)


def test_an_instance_that_lost_our_mark_is_not_touched_and_alarms_until_an_operator_decides() -> None:
    world = World()
    running_pods(world, 1)
    claim = claims(world)[0]
    remark(world, str(claim.instance_id), mark=None)
    world.minute()
    assert running(world.pod("train-0"))
    assert world.telemetry.total("SystemsUnknown") == 1
    world.delete_pod("train-0")
    world.pump()
    world.run(5)
    assert [c.phase for c in claims(world)] == [Phase.TERMINATING]
    assert [m.id for m in world.simulated.console.living()] == [claim.instance_id]
    assert said(world, "instance without our mark: not touched")


def test_a_mark_that_comes_back_is_believed_again() -> None:
    world = World()
    running_pods(world, 1)
    instance_id = str(claims(world)[0].instance_id)
    mark = world.simulated.console.owned()[0].mark
    remark(world, instance_id, installation="another")
    world.minute()
    assert claims(world)[0].attempts[-1].strange
    remark(world, instance_id, mark=mark)
    world.minute()
    assert not claims(world)[0].attempts[-1].strange
    world.delete_pod("train-0")
    world.pump()
    world.tick()
    assert claims(world) == []
    assert world.simulated.console.living() == []


def test_of_two_instances_with_one_mark_the_claim_s_stays_and_the_copy_goes() -> None:
    world = World()
    names = running_pods(world, 1)
    claim = claims(world)[0]
    copy = world.simulated.console.add_foreign()
    remark(world, copy, mark=claim.mark(INSTALLATION))
    world.run(3)
    assert world.billed() == [claim.instance_id]
    assert running(world.pod(names[0]))


def test_a_copied_mark_of_another_installation_is_foreign_and_stays() -> None:
    world = World()
    running_pods(world, 1)
    mark = claims(world)[0].mark("another-installation")
    copy = world.simulated.console.add_foreign()
    remark(world, copy, mark=mark)
    world.run(15)
    assert copy in world.billed()
