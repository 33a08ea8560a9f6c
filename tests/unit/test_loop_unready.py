"""An instance that ran and then reads as pending: an unknown word, or a step back. It ends, but not at once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from nebula.domain.claim import Claim, Observation, Phase, TerminationReason
from nebula.domain.instance import Instance, InstanceState
from nebula.lifecycle.observation import observed

from tests.support.claims import NOW, SECOND
from tests.support.mischief import claims, running_pods, said
from tests.support.world import World, running

RAN = Observation(state=InstanceState.RUNNING, running_since=NOW)


def _step_back(world: World, *, back: bool = True) -> None:
    """The provider reports the one instance as booting (or as running again)."""
    machine = world.simulated.console.owned()[0]
    machine.running_at = world.clock.now() + timedelta(days=1) if back else machine.created_at
    machine.changed()


def _regressed() -> tuple[World, Claim]:
    world = World()
    running_pods(world, 1)
    _step_back(world)
    world.tick()
    return world, claims(world)[0]


def _ready(world: World) -> dict[str, Any]:
    pod = world.pod("train-0") or {}
    return next(c for c in pod["status"]["conditions"] if c["type"] == "Ready")


@pytest.mark.parametrize(
    ("state", "since"),
    [
        (InstanceState.PENDING, NOW + SECOND),
        (InstanceState.RUNNING, None),
        (InstanceState.EXITED, None),
        (InstanceState.FAILED, None),
        (InstanceState.TERMINATED, None),
    ],
)
def test_only_a_pending_word_after_it_ran_makes_it_unready(state: InstanceState, since: object) -> None:
    assert observed(RAN, Instance(id="i", state=state), NOW + SECOND).unready_since == since


def test_the_first_moment_is_kept_and_a_running_word_ends_it() -> None:
    once = observed(RAN, Instance(id="i"), NOW + SECOND)
    assert observed(once, Instance(id="i"), NOW + 2 * SECOND) == once
    assert observed(once, Instance(id="i", state=InstanceState.RUNNING), NOW + 2 * SECOND).unready_since is None


def test_an_instance_that_never_ran_is_booting_not_unready() -> None:
    assert observed(Observation(), Instance(id="i"), NOW).unready_since is None


def test_the_pod_stays_running_and_is_not_ready() -> None:
    world, claim = _regressed()
    pod = world.pod("train-0") or {}
    assert claim.observation.unready_since is not None
    assert pod["status"]["phase"] == "Running"
    assert "running" in pod["status"]["containerStatuses"][0]["state"]
    assert (_ready(world)["status"], _ready(world)["reason"]) == ("False", "InstanceNotReady")


def test_it_is_counted_while_it_lasts() -> None:
    world, _ = _regressed()
    world.minute()
    assert world.telemetry.total("InstancesUnready") == 1
    _step_back(world, back=False)
    world.minute()
    assert world.telemetry.total("InstancesUnready") == 1


def test_it_writes_nothing_while_nothing_changes() -> None:
    world, claim = _regressed()
    world.run(2)
    assert claims(world)[0].version == claim.version


def test_an_instance_that_runs_again_makes_the_pod_ready_again() -> None:
    world, _ = _regressed()
    _step_back(world, back=False)
    world.tick()
    assert running(world.pod("train-0"))
    assert claims(world)[0].observation.unready_since is None


def test_past_the_start_deadline_the_claim_ends_and_says_why() -> None:
    world, claim = _regressed()
    minutes = int(claim.failover.start_deadline / timedelta(minutes=1))
    world.run(minutes - 1)
    assert claims(world)[0].phase is Phase.RELEASED
    world.run(3)
    ended = world.claims.get(claim.claim_id)
    assert ended is not None
    assert (ended.phase, ended.termination_reason) == (Phase.TERMINATED, TerminationReason.INSTANCE_FAILED)
    assert "longer than startDeadline" in ended.message
    status = (world.pod("train-0") or {})["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "InstanceFailed")
    assert "neither running nor ended" in status["message"]
    assert world.billed() == []


def test_a_pod_that_is_deleted_meanwhile_ends_as_deleted() -> None:
    world, claim = _regressed()
    world.delete_pod("train-0")
    world.pump()
    world.tick()
    ended = world.claims.get(claim.claim_id)
    assert ended is not None
    assert ended.termination_reason is TerminationReason.POD_DELETED
    assert said(world, "claim failed") == []
