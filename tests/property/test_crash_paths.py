"""A crash between any two outside calls of the other paths of a claim: failover, release, withdrawal, warning, abandon.

The ways up and down are in ``test_crashes.py``. Each path is counted first, then crashed at each of its calls, before
and after the call's effect; the events on the bus are lost with it, so only the ledger is left to go on from.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import boto3
import pytest
from moto import mock_aws
from nebula.aws import AwsClients
from nebula.domain.claim import Phase
from nebula.events.envelope import parse_envelope
from nebula.kubernetes.api import ClusterUnavailableError
from nebula.providers.errors import NoCapacityError, ProviderUnavailableError
from nebula.providers.simulated import Behaviour, Call
from nebula.workflows import observe
from nebula.workflows.abandon import abandon
from nebula.workflows.interruption import interrupted

from tests.support.tables import create_tables, dynamo_stores
from tests.support.tripwire import CrashError, wired
from tests.support.world import CLUSTER, World, pool_object, running

#: Each call is crashed before or after its effect, in turn; before *and* after where there is time for it.
LONG = bool(os.environ.get("LONG_TESTS"))
SESSION = boto3.session.Session("testing", "testing", region_name="eu-central-1")


@dataclass(frozen=True)
class Path:
    """How a path is prepared and gone, and whether its Pod runs in the end."""

    prepare: Callable[[World], object]
    go: Callable[[World], object]
    runs: bool = True


def _world(**stores: Any) -> World:
    return World(pool=pool_object("simulated", capacityTypes=["OnDemand", "Spot"]), **stores)


def _nothing(_world: World) -> None:
    """The path begins at the Pod's creation."""


def _up(world: World) -> None:
    world.create_pod()
    world.pump()
    world.tick()


def _down(world: World) -> None:
    world.delete_pod()
    world.pump()
    world.tick()
    world.tick()


def _refused_once(world: World) -> None:
    world.simulated.script.fail(Call.PROVISION, NoCapacityError("none left"))


def _answer_lost(world: World) -> None:
    world.simulated.script.fail(Call.PROVISION, ProviderUnavailableError("read timeout"), after=True)
    world.simulated.script.fail(Call.FIND, ProviderUnavailableError("cut"))


def _recover(world: World) -> None:
    _up(world)
    world.run(4)


def _queued(world: World) -> None:
    """An instance that exists while its Pod still waits."""
    world.simulated._capabilities = world.simulated.capabilities.model_copy(update={"queues": True})
    world.simulated.behaviour = Behaviour(boot=timedelta(minutes=1))
    world.create_pod()
    world.pump()
    assert world.claim().phase is Phase.PROVISIONED
    world.simulated.behaviour = Behaviour()


def _breaks_down(world: World) -> None:
    for machine in world.billed():
        world.simulated.console.fail(machine, "broke down")
    world.tick()
    world.tick()


def _edited(world: World) -> None:
    """The Pod changes after its instance was made, so that the release withdraws it."""
    annotations = {"nebula.inftyai.com/ingress-ports": "none"}
    body = {"metadata": {"annotations": annotations}}
    type(world.api).patch_pod(world.api, "default", "train", body)
    world.clock.advance(timedelta(minutes=1))
    world.tick()
    world.tick()


def _release_unanswered(world: World) -> None:
    """The release went through, and nobody knows."""
    patch, left = world.api.patch_pod, iter([True])

    def once(*args: Any) -> Any:
        done = patch(*args)
        if next(left, False):
            raise ClusterUnavailableError("read timeout")
        return done

    world.api.patch_pod = once  # type: ignore[method-assign, assignment]


def _warned(world: World) -> None:
    (machine,) = world.billed()
    warning = parse_envelope(world.simulated.console.interrupt(machine, notice=timedelta(seconds=10)))
    interrupted(world.services("provisioning"), warning)
    world.tick()
    world.tick()


def _abandoned(world: World) -> None:
    abandon(world.services("cli"), world.claim().claim_id, "gone for good")
    world.run(2)


PATHS = {
    "create": Path(_nothing, _up),
    "failover of a refusal": Path(_refused_once, _up),
    "recovery of a lost answer": Path(_answer_lost, _recover),
    "failover of an instance": Path(_queued, _breaks_down),
    "release unanswered": Path(_release_unanswered, _recover),
    "withdraw": Path(_queued, _edited),
    "interruption while gated": Path(_queued, _warned),
    "interruption": Path(_up, _warned, runs=False),
    "abandon": Path(_up, _abandoned, runs=False),
    "delete": Path(_up, _down, runs=False),
}


def _calls(path: Path, **stores: Any) -> int:
    """How many outside calls a path makes when nothing crashes."""
    world = _world(**stores)
    path.prepare(world)
    wire = wired(world)
    path.go(world)
    return len(wire.log)


def _crashed(path: Path, number: int, *, after: bool, **stores: Any) -> World:
    """The path crashed at one call, with everything on the bus lost; then time to recover."""
    world = _world(**stores)
    path.prepare(world)
    wire = wired(world)
    wire.arm(number, after=after)
    try:
        path.go(world)
    except CrashError:
        world.collect()
        world.queue.clear()
    wire.disarm()
    return world


def _ends_well(world: World, path: Path) -> None:
    """Within eight minutes, and mostly much sooner."""
    for _ in range(7):
        world.minute()
        try:
            _is_well(world, path)
        except AssertionError:
            continue
        return
    world.minute()
    _is_well(world, path)


def _is_well(world: World, path: Path) -> None:
    billed = world.billed()
    live = list(world.claims.live(CLUSTER))
    if path.runs:
        assert running(world.pod()), (world.claim(), world.telemetry.lines[-5:])
        assert billed == [world.claim().instance_id]
    elif live:
        # The crash came before anything was begun: the Pod lives on as it was.
        assert billed == [live[0].instance_id]
    else:
        assert billed == []
    assert world.committed() == sum(claim.committed_per_hour for claim in live)


@pytest.mark.parametrize("name", PATHS)
def test_a_crash_at_any_call_of_a_path_ends_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe, "WORKERS", 1)
    path = PATHS[name]
    calls = _calls(path)
    assert calls > 3
    for number, after in itertools.product(range(1, calls + 1), (False, True)):
        if LONG or after is bool(number % 2):
            _ends_well(_crashed(path, number, after=after), path)


@pytest.mark.parametrize("name", ["create", "delete"])
def test_the_main_path_crashed_on_dynamodb_ends_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe, "WORKERS", 1)
    path = PATHS[name]
    with mock_aws():
        dynamodb = AwsClients(SESSION).dynamodb
        create_tables(dynamodb)
        calls = _calls(path, **dynamo_stores(dynamodb))
    assert calls > 3
    for number in range(1, calls + 1, 1 if LONG else 4):
        with mock_aws():
            dynamodb = AwsClients(SESSION).dynamodb
            create_tables(dynamodb)
            after = number % 8 > 4
            _ends_well(_crashed(path, number, after=after, **dynamo_stores(dynamodb)), path)
