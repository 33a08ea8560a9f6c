"""Field reports B, the first half: what must not be believed gone, and whose it is (docs/field-reports.md)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from nebula.domain.claim import AttemptOutcome, Phase, TerminationReason, claim_id_for
from nebula.domain.instance import Mark
from nebula.events.details import DetailType
from nebula.providers.errors import ProviderUnavailableError
from nebula.providers.runpod import marks
from nebula.providers.simulated import Call
from nebula.workflows.abandon import abandon
from nebula.workflows.observe import look
from nebula.workflows.orphans import UNCLAIMED_AGE, OrphanPolicy, reap_orphans

from local.in_process import DroppedError
from local.runpod.faults import Failure
from tests.support.placements import block_everything
from tests.support.runpod_installation import RunPodInstallation
from tests.support.scenarios import GPU_POD, up
from tests.support.world import CLUSTER, INSTALLATION, MINUTE, World, until_true

DISCONTINUED = "Can't discontinue a discontinued instance"


def test_b1_a_delete_that_found_no_network_is_never_recorded_as_gone() -> None:
    world = RunPodInstallation()
    made = up(world)
    world.simulator.fail(Failure(drop=True, times=10_000))
    world.delete_pod()
    world.pump()
    world.run(5)
    assert world.alive() == [made]
    claim = world.claim()
    assert claim.phase is Phase.TERMINATING
    assert claim.attempts[-1].outcome is AttemptOutcome.CREATED
    assert world.committed() > 0
    world.account.faults.clear()
    world.run(3)
    assert world.alive() == []
    assert world.pod() is None
    assert world.committed() == 0


def _crashed_after_create(world: RunPodInstallation) -> None:
    """A row that was never written: marked as ours, claimed by nobody."""
    env = marks.as_environment(Mark(installation=INSTALLATION, claim_id="e" * 32, attempt=1))
    world.account.create_pod({**GPU_POD, "env": env})


def _error_and_yet_created(world: RunPodInstallation) -> None:
    world.simulator.fail(Failure(500, method="POST", path="/v2/pods", after=True))
    world.create_pod("second")
    world.pump()
    world.delete_pod("second")
    world.pump()


def _given_up(world: RunPodInstallation) -> None:
    """An operator abandoned the claim; the box lives."""
    world.create_pod("second")
    world.pump()
    abandon(world.services("cli"), world.claim("second").claim_id, "closing the books")
    world.delete_pod("second", announce=False)


def _made_twice(world: RunPodInstallation) -> None:
    """A bug: a second instance with the mark of a claim that has one."""
    world.account.create_pod({**GPU_POD, "env": marks.as_environment(world.claim().mark(INSTALLATION))})


@pytest.mark.parametrize("orphan", [_crashed_after_create, _error_and_yet_created, _given_up, _made_twice])
def test_b2_each_kind_of_orphan_ends_and_nothing_of_the_other_servers_does(
    orphan: Callable[[RunPodInstallation], None],
) -> None:
    world = RunPodInstallation()
    ours = up(world)
    theirs = world.account.create_pod({**GPU_POD, "env": {}}).id
    mark = Mark(installation="another-installation", claim_id=world.claim().claim_id, attempt=1)
    sibling = world.account.create_pod({**GPU_POD, "env": marks.as_environment(mark)}).id
    orphan(world)
    world.clock.advance(UNCLAIMED_AGE)
    world.run(3)
    assert sorted(world.alive()) == sorted([ours, theirs, sibling])
    seen = look(world.services("status_polling"), until=world.clock.now() + MINUTE)
    until = world.clock.now() + MINUTE
    assert reap_orphans(world.services("status_polling"), seen, OrphanPolicy(), until=until).foreign == 2


def test_b3_a_provider_without_its_key_forgets_nothing_and_alarms() -> None:
    world = World()
    made = up(world)
    key = world.providers.keys.pop("simulated")
    world.delete_pod()
    world.pump()
    world.run(10)
    assert world.billed() == [made]
    assert world.claim().phase is Phase.TERMINATING
    assert world.telemetry.total("ProviderUnknown") > 0
    assert any(message == "provider unknown" and level == "error" for level, message, _ in world.telemetry.lines)
    world.providers.keys["simulated"] = key
    world.run(3)
    assert world.billed() == []
    assert world.pod() is None


def test_b4_an_operator_abandons_what_no_key_can_reach_and_it_is_on_record() -> None:
    world = World()
    made = up(world)
    uid = world.pod()["metadata"]["uid"]  # type: ignore[index]
    del world.providers.keys["simulated"]
    world.delete_pod()
    world.pump()
    world.run(2)
    claim_id = world.claim().claim_id
    abandon(world.services("cli"), claim_id, "the account is closed")
    world.run(2)
    claim = world.claims.get(claim_id_for(CLUSTER, uid))
    assert claim is not None
    assert (claim.phase, claim.termination_reason) == (Phase.TERMINATED, TerminationReason.ABANDONED)
    assert claim.attempts[-1].outcome is AttemptOutcome.ABANDONED
    assert world.committed() == 0
    assert world.pod() is None
    (line,) = [fields for _, message, fields in world.telemetry.lines if message == "claim abandoned"]
    assert "the account is closed" in line["reason"]
    assert line["unconfirmed"] == [f"simulated/{made}"]
    assert [event.detail_type for event in world.publisher.events].count(DetailType.CLAIM_ABANDONED) <= 1


@pytest.mark.parametrize("status", [400, 409, 422])
@pytest.mark.parametrize("reads", [404, 200])
def test_b5_any_refusal_of_a_delete_is_success_where_the_box_is_gone(status: int, reads: int) -> None:
    world = RunPodInstallation()
    world.account.reads_after_delete = reads
    made = up(world)
    world.simulator.fail(Failure(status, DISCONTINUED, method="DELETE", times=100))
    world.account.terminate(made)
    world.delete_pod()
    world.pump()
    until_true(world, lambda: world.pod() is None, minutes=3)
    assert list(world.claims.live(CLUSTER)) == []


def test_b5_the_same_words_about_a_box_that_lives_are_no_success() -> None:
    world = RunPodInstallation()
    made = up(world)
    world.simulator.fail(Failure(400, DISCONTINUED, method="DELETE", times=100))
    world.delete_pod()
    world.pump()
    world.run(5)
    assert world.alive() == [made]
    assert world.claim().phase is Phase.TERMINATING


@pytest.mark.parametrize("exists", [True, False])
def test_b6_no_terminate_is_ever_sent_without_an_id(exists: bool) -> None:
    """The create gave no id: looked for by mark, else proved never made."""
    world = World()
    asked: list[object] = []
    world.simulated.script.fail(Call.PROVISION, ProviderUnavailableError("read timeout"), after=exists)
    world.simulated.script.fail(Call.FIND, ProviderUnavailableError("read timeout"))
    world.simulated.script.before_each(lambda call, about: asked.append(about) if call is Call.TERMINATE else None)
    world.create_pod()
    world.pump()
    assert world.claim().attempts[-1].instance_id is None
    made = world.billed()
    world.delete_pod()
    world.pump()
    world.run(6)
    assert set(asked) == set(made)
    assert world.billed() == []
    assert list(world.claims.live(CLUSTER)) == []


def test_b7_a_delete_in_the_middle_of_a_recovery_leaves_nothing() -> None:
    """The first create's answer was lost; the second is in flight when the Pod is deleted."""
    world = World()
    world.simulated.script.fail(Call.PROVISION, ProviderUnavailableError("connection reset"))
    world.create_pod()
    world.pump()

    def meanwhile(call: Call, _subject: object) -> None:
        if call is Call.PROVISION:
            world.simulated.script.before_each(None)
            world.delete_pod()
            world.pump()

    world.simulated.script.before_each(meanwhile)
    world.run(8)
    assert world.simulated.script.counts[Call.PROVISION] == 2
    assert world.billed() == []
    assert world.pod() is None
    assert list(world.claims.live(CLUSTER)) == []
    assert world.committed() == 0


def test_b8_a_create_that_timed_out_is_looked_for_and_a_delete_is_asked_until_it_is_confirmed() -> None:
    world = RunPodInstallation()
    world.simulator.fail(Failure(method="POST", path="/v2/pods", after=True, drop=True))
    world.create_pod()
    world.pump()
    assert world.alive() == [world.claim().instance_id]
    assert len(world.calls("POST", "/v2/pods")) == 1
    wait = Failure(500, "try again in 60 seconds", method="DELETE", path="/v2/pods/.*", times=6)
    world.simulator.fail(wait)
    world.delete_pod()
    world.pump()
    assert len(world.alive()) == 1
    world.run(4)
    assert wait.times == 0
    assert world.alive() == []
    assert world.pod() is None


def _pending(world: World) -> None:
    block_everything(world, seconds=600)
    world.create_pod()
    world.pump()


def _placed(world: World) -> None:
    world.create_pod()
    world.deliver(world.collect().pop(0))
    world.publisher.take()


def _provisioning(world: World) -> None:
    world.simulated.script.fail(Call.PROVISION, ProviderUnavailableError("504"), after=True)
    world.simulated.script.fail(Call.FIND, ProviderUnavailableError("504"), times=2)
    world.create_pod()
    world.pump()


def _provisioned(world: World) -> None:
    world.simulated._capabilities = world.simulated.capabilities.model_copy(update={"queues": True})
    world.simulated.behaviour = world.simulated.behaviour.model_copy(update={"boot": timedelta(days=1)})
    world.create_pod()
    world.pump()


def _releasing(world: World) -> None:
    def fault(method: str, path: str) -> None:
        if method == "PATCH" and path.endswith("/pods/train"):
            raise DroppedError

    world.emulator.faults.append(fault)
    world.create_pod()
    world.pump()
    world.emulator.faults.remove(fault)


def _released(world: World) -> None:
    up(world)


def _withdrawing(world: World) -> None:
    _provisioned(world)
    world.simulated.behaviour = world.simulated.behaviour.model_copy(update={"termination": timedelta(minutes=4)})
    world.tick(after=timedelta(minutes=6))


def _terminating(world: World) -> None:
    world.simulated.behaviour = world.simulated.behaviour.model_copy(update={"termination": timedelta(minutes=4)})
    world.simulated.console.fail(up(world), "Xid 79")
    world.tick()


WAYS = {
    Phase.PENDING: _pending,
    Phase.PLACED: _placed,
    Phase.PROVISIONING: _provisioning,
    Phase.PROVISIONED: _provisioned,
    Phase.RELEASING: _releasing,
    Phase.RELEASED: _released,
    Phase.WITHDRAWING: _withdrawing,
    Phase.TERMINATING: _terminating,
}


@pytest.mark.parametrize("phase", sorted(set(Phase) - {Phase.TERMINATED}))
def test_b11_a_pod_deleted_in_any_phase_leaves_nothing(phase: Phase) -> None:
    world = World()
    WAYS[phase](world)
    assert world.claim().phase is phase
    world.queue.clear()
    world.delete_pod()
    world.pump()
    world.run(9)
    assert world.billed() == []
    assert world.pod() is None
    assert list(world.claims.live(CLUSTER)) == []
    assert world.committed() == 0
