"""An instance that its provider never lists, and that lives: it is read by its id, and judged by that."""

from __future__ import annotations

from datetime import timedelta

import pytest
from nebula.domain.claim import Phase

from tests.support.runpod_edits import edit_lists
from tests.support.runpod_installation import RunPodInstallation
from tests.support.world import running


def never_list(world: RunPodInstallation) -> None:
    """Every list is complete and empty from now on."""
    edit_lists(world.simulator, lambda answer: answer.update(pods=[]))


@pytest.mark.parametrize("count", [1, 6])
def test_its_pod_shows_running_and_nothing_is_written_while_nothing_changes(count: int) -> None:
    world = RunPodInstallation()
    never_list(world)
    names = [f"train-{number}" for number in range(count)]
    for name in names:
        world.create_pod(name)
    world.pump()
    world.run(2)
    assert all(running(world.pod(name)) for name in names)
    versions = [world.claim(name).version for name in names]
    world.run(8)
    assert [world.claim(name).version for name in names] == versions
    assert len(world.alive()) == count


def test_one_that_does_not_start_is_ended_at_its_deadline() -> None:
    world = RunPodInstallation(failover={"startDeadline": "5m"})
    world.account.timing.starting = timedelta(hours=3)
    never_list(world)
    world.create_pod()
    world.pump()
    world.run(7)
    pod = world.pod()
    assert pod is not None
    assert pod["status"]["phase"] == "Failed"
    assert world.claim().phase is Phase.TERMINATED
    assert world.alive() == []


def test_one_that_carries_another_mark_is_left_as_it_is() -> None:
    world = RunPodInstallation()
    world.create_pod()
    world.pump()
    world.run(1)
    never_list(world)
    world.account.alive()[0].content["env"]["NEBULA_CLAIM"] = "0" * 32
    world.run(3)
    assert world.claim().phase is Phase.RELEASED
    assert running(world.pod())
    assert len(world.alive()) == 1
