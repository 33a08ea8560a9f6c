"""The worker killed at random while Pods come and go ends clean: nothing is left, nothing was rented twice.

``PLUG_PODS``, ``PLUG_KILLS`` and ``PLUG_SEED`` change its size and its choices; ``make test-long`` runs 200 Pods
and 50 kills.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from nebula.domain.claim import Claim, Phase

from local.stack import Stack
from tests.support.local_stack import World, wait_until
from tests.support.plug import Plug

pytestmark = [pytest.mark.network, pytest.mark.slow]

PODS = int(os.environ.get("PLUG_PODS", "40"))
KILLS = int(os.environ.get("PLUG_KILLS", "10"))
SEED = int(os.environ.get("PLUG_SEED", "1"))
#: Retry timers of a minute and more are not divided in the local stack.
SETTLING_SECONDS = 300.0
#: What a function that dies may leave in its queue until the queue gives it up: hints, which the ledger replaces.
HINTS = {
    "Pod Gated",
    "Pod Changed",
    "Pod Deleted",
    "NodePool Changed",
    "Claim Placed",
    "Claim Due",
    "Instance Ready",
    "Provision Rejected",
}


def test_the_worker_killed_at_random_ends_clean(tmp_path: Path) -> None:
    stack = Stack(tmp_path / "stack", divisor=30)
    with stack:
        world = World(stack)
        world.apply_policies()
        plug = Plug(world, SEED, PODS, KILLS)
        plug.pull()
        wait_until(lambda: _all_run(plug), "the Pods that are left run", seconds=SETTLING_SECONDS)
        assert sorted(world.alive()) == sorted(world.instance_of(name) for name in plug.standing)

        for name in list(plug.standing):
            plug.delete(name)
        wait_until(lambda: not _pods(world) and not world.alive(), "everything is gone", seconds=SETTLING_SECONDS)
        wait_until(lambda: _all_over(plug.claims()), "every claim is closed", seconds=SETTLING_SECONDS)
        letters = plug.dead_letters()
        claims = plug.claims()
        made = len(world.made())

    _report(plug, claims, made, letters)
    assert all(not claim.unconfirmed for claim in claims.values())
    assert {str(letter["detail-type"]) for letter in letters} <= HINTS, letters


def _pods(world: World) -> list[str]:
    return [pod["metadata"]["name"] for pod in world.kubectl.list("Pod")]


def _all_run(plug: Plug) -> bool:
    """Also that those deleted meanwhile are gone, with what was rented for them."""
    phases = {pod["metadata"]["name"]: pod["status"].get("phase") for pod in plug.world.kubectl.list("Pod")}
    return phases == dict.fromkeys(plug.standing, "Running") and len(plug.world.alive()) == len(plug.standing)


def _all_over(claims: dict[str, Claim]) -> bool:
    return {claim.phase for claim in claims.values()} == {Phase.TERMINATED}


def _report(plug: Plug, claims: dict[str, Claim], made: int, letters: list[dict[str, object]]) -> None:
    attempts = Counter(str(attempt.outcome) for claim in claims.values() for attempt in claim.attempts)
    print(  # noqa: T201  the measured outcome
        f"\nseed {plug.seed}: {len(plug.uids)} Pods, {plug.kills} kills, {len(claims)} claims, {made} instances made,"
        f" attempts {dict(attempts)}, dead letters {dict(Counter(str(one['detail-type']) for one in letters))}"
    )
