"""Odd words of a provider about one instance: its Pod's status is written all the same."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support.runpod_edits import edit_pods
from tests.support.runpod_installation import RunPodInstallation
from tests.support.world import START, running


@pytest.mark.parametrize(
    "told",
    [
        "0001-01-01T00:00:00Z",
        "0001-01-01T00:00:00+23:00",
        "9999-12-31T23:59:59-23:00",
        "2099-01-01T00:00:00Z",
        "1999-01-01T00:00:00Z",
        "soon",
        None,
        17,
    ],
)
def test_a_start_that_cannot_be_true_is_moved_to_where_it_can(told: object) -> None:
    """A time that is not set yet may read as the year 1, which no API server takes."""
    world = RunPodInstallation()
    edit_pods(world.simulator, lambda pod: pod.update(startedAt=told))
    world.create_pod()
    world.pump()
    world.run(2)
    assert running(world.pod())
    since = world.claim().observation.running_since
    assert since is not None
    assert START <= since <= START + timedelta(minutes=1)
    assert world.telemetry.total("Defects") == 0
    world.delete_pod()
    world.pump()
    world.run(2)
    assert world.alive() == []
