"""A release without an answer, and then a cluster that takes no write of ours: what it shows decides, in time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest
from nebula.domain.claim import AttemptOutcome, Phase
from nebula.kubernetes.api import ClusterUnavailableError, ForbiddenError, KubernetesError
from nebula.lifecycle.deadlines import LANDS_WITHIN

from tests.support.world import World

Patch = Mapping[str, Any]
RELEASE_DEADLINE = timedelta(minutes=5)
NO_ANSWER = ClusterUnavailableError("timeout")
LOCKED_OUT = ForbiddenError("PATCH pods: 403")


def lock_out(world: World, error: KubernetesError, *, lands: bool = False) -> list[Patch]:
    """The first patch of a Pod gets no answer (``lands``: and did its work), all later writes this error."""
    made: list[Patch] = []
    pass_through: Callable[..., Any] = world.api.patch_pod

    def patch(namespace: str, name: str, body: Patch) -> dict[str, Any]:
        made.append(body)
        if len(made) > 1:
            raise error
        if lands:
            pass_through(namespace, name, body)
        raise NO_ANSWER

    def status(_namespace: str, _name: str, _body: Patch) -> dict[str, Any]:
        raise error

    world.api.patch_pod = patch  # type: ignore[method-assign,assignment]
    world.api.patch_pod_status = status  # type: ignore[method-assign,assignment]
    return made


def releases(patches: list[Patch]) -> int:
    """How many of them would have released the Pod."""
    return sum("spec" in patch for patch in patches)


def until(world: World, moment: timedelta, began: Any) -> None:
    while world.clock.now() - began < moment:
        world.tick()


@pytest.mark.parametrize("error", [LOCKED_OUT, NO_ANSWER], ids=["refused", "silent"])
def test_a_gate_that_stands_when_no_patch_can_land_any_more_gives_the_machine_back(error: KubernetesError) -> None:
    world = World()
    lock_out(world, error)
    world.create_pod()
    world.pump()
    claim = world.claim()
    assert claim.phase is Phase.RELEASING
    until(world, RELEASE_DEADLINE + LANDS_WITHIN - timedelta(seconds=15), claim.phase_since)
    assert world.claim().phase is Phase.RELEASING
    assert world.billed() == [claim.instance_id]
    world.run(1)
    assert claim.instance_id not in world.billed()
    assert world.claim().attempts[0].outcome is AttemptOutcome.GONE


def test_a_locked_out_pod_says_in_the_ledger_why_and_buys_ever_more_rarely() -> None:
    world = World()
    lock_out(world, LOCKED_OUT)
    world.create_pod()
    world.pump()
    world.run(60)
    claim = world.claim()
    assert claim.phase is Phase.PENDING
    assert claim.reason in {"ReleaseDeadline", "ReleaseRefused"}
    assert 2 < len(claim.attempts) <= 8
    assert world.billed() == []


def test_no_release_is_sent_after_the_deadline_so_that_none_can_be_late() -> None:
    world = World()
    made = lock_out(world, NO_ANSWER)
    world.create_pod()
    world.pump()
    began = world.claim().phase_since
    until(world, RELEASE_DEADLINE + timedelta(seconds=1), began)
    sent = releases(made)
    assert sent > 1
    until(world, RELEASE_DEADLINE + LANDS_WITHIN - timedelta(seconds=15), began)
    assert world.claim().phase is Phase.RELEASING
    assert releases(made) == sent


def test_a_release_that_landed_without_an_answer_is_read_as_one_although_nothing_can_be_written() -> None:
    world = World()
    lock_out(world, LOCKED_OUT, lands=True)
    world.create_pod()
    world.pump()
    world.run(1)
    claim = world.claim()
    assert claim.phase is Phase.RELEASED
    world.run(10)
    assert world.billed() == [claim.instance_id]


def test_a_cluster_that_cannot_even_be_read_keeps_the_machine_and_alarms() -> None:
    world = World()
    lock_out(world, LOCKED_OUT)
    world.create_pod()
    world.pump()

    def refused(*_: object, **__: object) -> None:
        raise ForbiddenError("GET pods: 403")

    world.api.get_pod = refused  # type: ignore[method-assign]
    for _ in range(12):
        try:
            world.minute()
        except ForbiddenError:
            # The bus would bring the event again, and give it up.
            world.queue.clear()
    (claim,) = world.claims.live("test")
    assert claim.phase is Phase.RELEASING
    assert world.billed() == [claim.instance_id]
    assert world.telemetry.total("ClaimsOverdue") > 0
