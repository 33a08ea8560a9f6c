"""A list whose pages are slow breaks off in time: the status loop has other work."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from nebula.domain.claim import Phase
from nebula.providers.errors import ProviderUnavailableError
from nebula.providers.runpod.client import LIST_TIME

from local.runpod.paging import PageStyle
from local.runpod.simulator import Simulator
from local.runpod.wire import Response
from tests.support.runpod import RunPodWorld, mark, request
from tests.support.runpod_edits import edit_answers, edit_lists
from tests.support.runpod_installation import RunPodInstallation


def without_env(answer: dict[str, Any]) -> None:
    for pod in answer["pods"]:
        del pod["env"]


def slow_down(simulator: Simulator, clock: Any, seconds: float, *, hide: bool = False) -> None:
    """Every GET of Pods takes so long; ``hide``: no list shows ``env``."""

    def wait(method: str, path: str, answer: Response) -> Response:
        if method == "GET" and path.startswith("/v2/pods"):
            clock.advance(timedelta(seconds=seconds))
        return answer

    edit_answers(simulator, wait)
    if hide:
        edit_lists(simulator, without_env)


def world_with(pods: int, seconds: float, *, hide: bool = False) -> RunPodWorld:
    world = RunPodWorld()
    for number in range(pods):
        world.provider.provision(request(of=mark(number + 1), name=f"pod-{number}"))
    world.account.pages = PageStyle(at_most=2)
    slow_down(world.simulator, world.clock, seconds, hide=hide)
    return world


@pytest.mark.parametrize("hide", [False, True])
def test_slow_pages_and_slow_single_reads_end_at_the_bound_and_prove_no_absence(hide: bool) -> None:
    world = world_with(20, 6, hide=hide)
    began_at = world.clock.now()
    listing = world.provider.list_instances()
    # The call that is on its way at the bound is cut there by its own time limit, which no simulator has.
    assert world.clock.now() - began_at < LIST_TIME + timedelta(seconds=6)
    assert listing.complete_scopes == frozenset()
    assert listing.instances
    with pytest.raises(ProviderUnavailableError, match="not complete"):
        world.provider.find(mark(99))


def test_a_list_that_is_just_slow_is_complete() -> None:
    world = world_with(6, 6)
    assert world.provider.list_instances().complete_scopes == {""}


def test_a_slow_list_does_not_keep_a_delete_from_being_confirmed() -> None:
    world = RunPodInstallation()
    names = [f"train-{number}" for number in range(10)]
    for name in names:
        world.create_pod(name)
    world.pump()
    world.run(1)
    world.account.pages = PageStyle(at_most=1)
    slow_down(world.simulator, world.clock, 3)
    world.delete_pod(names[0])
    world.pump()
    world.run(3)
    assert world.pod(names[0]) is None
    assert len(world.alive()) == 9
    assert {world.claim(name).phase for name in names[1:]} == {Phase.RELEASED}
    assert world.telemetry.total("SystemsUnknown") > 0
