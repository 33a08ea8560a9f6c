"""One test per guard of a claim's life that no other test holds alone: each is named by a mutant."""

from __future__ import annotations

from datetime import timedelta

import pytest
from nebula.domain.claim import Phase
from nebula.events.details import DetailType
from nebula.events.envelope import parse_envelope
from nebula.kubernetes.api import ClusterUnavailableError
from nebula.providers.errors import NoCapacityError, ProviderUnavailableError
from nebula.providers.simulated import Call
from nebula.workflows.announce import announce_due
from nebula.workflows.interruption import interrupted
from nebula.workflows.provision import provision_claim

from tests.support.mischief import another_cluster
from tests.support.simulated import make_slowly
from tests.support.tripwire import wired
from tests.support.world import World, pool_object, running, until_true


def test_a_delivery_inside_a_live_lease_asks_nobody() -> None:
    world = World()
    world.simulated.script.fail(Call.PROVISION, ProviderUnavailableError("read timeout"), after=True)
    world.simulated.script.fail(Call.FIND, ProviderUnavailableError("cut"))
    world.create_pod()
    world.pump()
    before = world.claim()
    assert before.phase is Phase.PROVISIONING
    asked = sum(world.simulated.script.counts.values())
    provision_claim(world.services("provisioning"), before.claim_id)
    assert sum(world.simulated.script.counts.values()) == asked
    assert world.claim() == before


def test_the_block_stands_before_the_claim_moves() -> None:
    world = World()
    wire = wired(world)
    world.simulated.script.fail(Call.PROVISION, NoCapacityError("none left"))
    world.create_pod()
    world.pump()
    create = wire.log.index("simulated.provision")
    after = [call for call in wire.log[create:] if call in ("blocks.put", "claims.save")]
    assert after[:2] == ["blocks.put", "claims.save"]


def test_a_due_claim_is_announced_once_a_minute() -> None:
    world = World()
    world.create_pod()
    world.pump()
    claim = world.claim()
    world.claims.save(claim, claim.model_copy(update={"next_action_at": world.clock.now()}))
    services = world.services("status_polling")
    assert [announce_due(services), announce_due(services)] == [1, 0]
    world.clock.advance(timedelta(seconds=61))
    assert announce_due(services) == 1


def test_an_absence_from_lists_is_believed_only_when_the_id_is_gone_too(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.create_pod()
    world.pump()
    world.tick()
    claim = world.claim()
    machine = world.simulated._fleet.get(str(claim.instance_id))
    assert machine is not None
    machine.visible_at = world.clock.now() + timedelta(hours=1)
    world.run(3)
    assert running(world.pod())
    assert world.claim().phase is Phase.RELEASED


def test_a_warning_about_an_earlier_instance_leaves_the_present_one_alone() -> None:
    world = World(pool=pool_object("simulated", capacityTypes=["OnDemand", "Spot"]))
    make_slowly(world.simulated, boot=timedelta(minutes=2))
    world.create_pod()
    world.pump()
    (first,) = world.billed()
    world.simulated.console.fail(first, "broke down")
    until_true(world, lambda: world.claim().instance_id not in (None, first))
    world.clock.advance(timedelta(minutes=15))
    until_true(world, lambda: world.claim().phase is Phase.RELEASED, minutes=20)
    before = world.claim()
    warning = parse_envelope(world.simulated.console.interrupt(first))
    interrupted(world.services("provisioning"), warning)
    assert world.claim() == before


def test_a_terminated_claim_frees_its_budget_once() -> None:
    world = World()
    for name in ("a", "b"):
        world.create_pod(name)
    world.pump()
    held = world.claim("b").committed_per_hour
    assert world.committed() == 2 * held
    world.delete_pod("a")
    world.pump()
    world.tick()
    world.tick()
    assert world.pod("a") is None
    assert world.committed() == held


def test_a_delete_told_of_another_cluster_s_pod_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    pod = world.create_pod()
    world.pump()
    world.tick()
    before, billed = world.claim(), world.billed()
    another_cluster(world)
    monkeypatch.setattr(world.api, "get_pod", lambda *_: None)
    world.announce(DetailType.POD_DELETED, pod)
    with pytest.raises(ClusterUnavailableError):
        world.pump()
    assert world.billed() == billed
    assert world.claims.get(before.claim_id) == before
