"""Field reports B, the second half: how things end, and what is written after the end (docs/field-reports.md)."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from nebula.credentials.policy import RetirementPolicies
from nebula.domain.claim import Phase, TerminationReason
from nebula.domain.credential import CredentialState
from nebula.domain.instance import Mark
from nebula.providers.runpod import marks
from nebula.stores.claims import ConflictError
from nebula.workflows.orphans import UNCLAIMED_AGE
from nebula.workflows.retire import retire_credentials

from local.runpod.faults import Failure
from tests.support.hanging import Hanging
from tests.support.lending import POLICY
from tests.support.runpod_installation import RunPodInstallation, events, put_login, with_image
from tests.support.scenarios import GPU_POD, up
from tests.support.world import CLUSTER, INSTALLATION, World, running, until_true


def test_b9_the_row_ends_only_after_the_machine_was_seen_gone() -> None:
    world = World()
    made = up(world)
    world.simulated.behaviour = world.simulated.behaviour.model_copy(
        update={"termination": timedelta(minutes=3), "linger": timedelta(minutes=1)}
    )
    claim_id = world.claim().claim_id
    world.delete_pod()
    world.pump()
    seen: list[tuple[str, bool]] = []
    for _ in range(20):
        world.tick()
        claim = world.claims.get(claim_id)
        assert claim is not None
        seen.append((str(claim.phase), world.billed() == [made]))
    assert seen[0] == ("Terminating", True)
    assert seen[-1] == ("Terminated", False)
    assert ("Terminated", True) not in seen
    assert [before for before, after in pairwise(seen) if before > after and before[0] == "Terminated"] == []


def test_b10_the_side_object_of_a_pod_is_a_row_that_ends_by_itself_and_stops_no_namesake() -> None:
    world = RunPodInstallation()
    put_login(world)
    wish = with_image("registry.example.com/train:1", "login")
    for _ in range(2):
        world.create_pod(**wish)
        world.pump()
        until_true(world, lambda: running(world.pod()))
        world.delete_pod()
        world.pump()
        until_true(world, lambda: world.pod() is None)
    (row,) = world.credentials.all()
    assert row.state is CredentialState.ACTIVE
    assert len(world.account.registries.list()) == 1

    for _ in range(3):
        world.clock.advance(timedelta(days=4))
        retire_credentials(world.services("credential_retirement"), RetirementPolicies(default=POLICY))
    assert world.account.registries.list() == []
    (row,) = world.credentials.all(include_retired=True)
    assert row.state is CredentialState.RETIRED


@pytest.mark.parametrize(("status", "ends"), [(404, True), (500, False), (503, False), (429, False)])
def test_b12_a_404_is_an_answer_and_a_failing_read_is_none(status: int, ends: bool) -> None:
    """The box is in no list any more; what the read by its id says decides."""
    world = RunPodInstallation()
    made = up(world)
    world.account.terminate(made)
    if not ends:
        world.simulator.fail(Failure(status, "lookup failed", method="GET", path="/v2/pods/.+", times=10_000))
    world.run(4)
    claim = world.claim()
    assert (claim.phase is Phase.TERMINATED) is ends
    assert (claim.termination_reason is TerminationReason.INSTANCE_LOST) is ends


@pytest.mark.parametrize("status", [404, 500])
def test_b12_an_orphan_whose_delete_is_answered_404_is_done_and_one_with_500_is_asked_again(status: int) -> None:
    world = RunPodInstallation()
    up(world)
    env = marks.as_environment(Mark(installation=INSTALLATION, claim_id="e" * 32, attempt=1))
    orphan = world.account.create_pod({**GPU_POD, "env": env})
    gone = status == 404
    world.simulator.fail(Failure(status, "pod not found", method="DELETE", after=gone, times=1 if gone else 9))
    world.clock.advance(UNCLAIMED_AGE)
    world.run(6)
    assert orphan.terminated_at is not None
    asked = [one.status for one in world.account.requests if one.path == f"/v2/pods/{orphan.id}"]
    assert asked.count(404) == gone
    assert (asked.count(500) >= 9) is not gone


def test_b13_a_provider_that_never_answers_holds_nobody_for_longer_than_the_function_s_time() -> None:
    world = RunPodInstallation()
    made = up(world)
    hanging = Hanging(world, "GET", "DELETE", "POST")
    began = world.clock.now()
    world.delete_pod()
    world.pump()
    assert hanging.waited
    assert world.clock.now() - began < timedelta(seconds=90)
    assert world.claim().phase is Phase.TERMINATING
    began = world.clock.now()
    world.tick(after=timedelta(0), pump=False)
    assert world.clock.now() - began < timedelta(seconds=60)
    assert max(seconds for _, _, seconds in hanging.waited) <= 30
    hanging.methods.clear()
    until_true(world, lambda: world.pod() is None)
    assert made not in world.alive()


def test_b14_a_box_that_was_deleted_in_the_console_fails_its_pod_with_the_reason() -> None:
    world = RunPodInstallation()
    made = up(world)
    world.account.terminate(made)
    world.tick()
    assert running(world.pod()), "one absence is no proof"
    world.run(2)
    pod = world.pod()
    assert pod is not None
    assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "InstanceLost")
    (event,) = events(world, "InstanceLost")
    assert made in event["message"]
    assert world.claim().phase is Phase.TERMINATED
    assert world.committed() == 0


def test_b14_a_list_that_broke_off_proves_no_absence(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    up(world, "first")
    up(world, "second")
    world.simulated.break_listing(shown=1)
    monkeypatch.setattr(world.simulated, "get", lambda _: None)
    world.run(5)
    assert [world.claim(name).phase for name in ("first", "second")] == [Phase.RELEASED, Phase.RELEASED]
    assert running(world.pod("second"))


def test_b16_a_health_check_that_comes_after_the_end_changes_nothing() -> None:
    world = RunPodInstallation()
    made = up(world)
    world.account.pods[made].force("ERROR", world.clock.now())
    world.tick(pump=False)
    pod = world.pod()
    assert pod is not None
    assert pod["status"]["phase"] == "Failed"
    world.account.pods[made].force("RUNNING", world.clock.now())
    world.run(3)
    after = world.pod()
    assert after is not None
    assert after["status"]["phase"] == "Failed"
    assert after["status"]["containerStatuses"] == pod["status"]["containerStatuses"]
    assert world.alive() == []


def test_b16_a_write_on_an_older_version_is_refused(ledgers: dict[str, Any]) -> None:
    world = World(**ledgers)
    up(world)
    checked = world.claim()
    world.delete_pod()
    world.pump()
    late = checked.model_copy(update={"message": "healthy"})
    with pytest.raises(ConflictError):
        world.claims.save(checked, late)
    world.run(2)
    with pytest.raises(ConflictError):
        world.claims.save(checked, late)
    assert list(world.claims.live(CLUSTER)) == []
