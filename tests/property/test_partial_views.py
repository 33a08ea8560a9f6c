"""Half a view of a provider says nothing about the other half: no Pod's status changes on it."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from nebula.domain.claim import Claim, Phase
from nebula.providers.errors import RateLimitedError
from nebula.providers.simulated import Behaviour, Call, SimulatedProvider

from local.runpod.faults import Failure
from local.runpod.paging import PageStyle
from local.runpod.wire import Response
from tests.support.runpod_installation import RunPodInstallation
from tests.support.world import World, pool_object, running, until_true

SCOPES = ("east", "west")
MINUTES = 8


def two_scopes(pods: int = 4) -> World:
    """Pods that run in both scopes of one provider, alternately."""
    entry = {"name": "simulated", "regions": list(SCOPES)}
    world = World(pool=pool_object(providers=[entry]))
    world.simulated = SimulatedProvider(world.clock, scopes=SCOPES, per_region=True)
    world.providers._providers["simulated"] = world.simulated
    for number in range(pods):
        world.simulated.market.restock()
        world.simulated.market.limit(0, region=SCOPES[number % 2])
        world.create_pod(f"train-{number}")
        world.pump()
        world.clock.advance(timedelta(minutes=1))
    world.simulated.market.restock()
    world.run(2)
    assert {machine.scope for machine in world.simulated.console.owned()} == set(SCOPES)
    assert all(running(world.pod(f"train-{number}")) for number in range(pods))
    return world


def shown(world: World, names: list[str]) -> list[tuple[Any, Claim]]:
    """What a person and the ledger see of Pods."""
    found = []
    for name in names:
        pod = world.pod(name)
        assert pod is not None
        found.append((copy.deepcopy(pod["status"]), world.claim(name)))
    return found


@pytest.mark.parametrize("pages", [0, 1])
@pytest.mark.parametrize("scope", SCOPES)
def test_throttling_one_of_two_scopes_changes_no_pods_status(scope: str, pages: int) -> None:
    world = two_scopes()
    names = [f"train-{number}" for number in range(4)]
    before, billed = shown(world, names), world.billed()
    world.simulated.break_listing(scope, shown=pages)
    world.run(MINUTES)
    assert shown(world, names) == before
    assert world.billed() == billed
    world.simulated.mend_listings()
    world.run(2)
    assert shown(world, names) == before


def test_a_loss_in_the_scope_that_answers_is_still_seen() -> None:
    world = two_scopes()
    by_scope = {machine.scope: machine for machine in world.simulated.console.owned()}
    world.simulated.break_listing("east")
    for machine in by_scope.values():
        world.simulated.console.delete(machine.id)
    world.run(MINUTES)
    lost = [claim for claim in world.claims.all() if claim.phase is Phase.TERMINATED]
    assert [claim.attempts[-1].instance_id for claim in lost] == [by_scope["west"].id]
    world.simulated.mend_listings()
    until_true(world, lambda: sum(claim.phase is Phase.TERMINATED for claim in world.claims.all()) == 2)


def test_an_accepted_delete_is_not_gone_while_its_scope_cannot_be_listed() -> None:
    world = two_scopes()
    world.simulated.behaviour = Behaviour(termination=timedelta(minutes=4))
    ending = next(name for name in ("train-0", "train-1") if world.claim(name).attempts[-1].scope == "west")
    claim = world.claim(ending)
    world.simulated.break_listing("west")
    world.delete_pod(ending)
    world.pump()
    for _ in range(3):
        world.minute()
        assert world.pod(ending) is not None
        kept = world.claims.get(claim.claim_id)
        assert kept is not None
        assert kept.phase is Phase.TERMINATING
    world.simulated.mend_listings()
    until_true(world, lambda: world.pod(ending) is None)
    assert claim.instance_id not in world.billed()


def test_a_throttled_listing_of_the_whole_provider_changes_nothing() -> None:
    world = two_scopes()
    names = [f"train-{number}" for number in range(4)]
    before = shown(world, names)
    slow = RateLimitedError("slow down", retry_after=timedelta(seconds=30))
    world.simulated.script.fail(Call.LIST, slow, times=10_000)
    world.run(MINUTES)
    assert shown(world, names) == before


def paged_runpod(pods: int, at_most: int) -> RunPodInstallation:
    """Pods that run on RunPod, whose lists come in pages of ``at_most``."""
    world = RunPodInstallation()
    world.account.pages = PageStyle(at_most=at_most)
    for number in range(pods):
        world.create_pod(f"train-{number}")
    world.pump()
    world.run(4)
    assert all(running(world.pod(f"train-{number}")) for number in range(pods))
    return world


def fail_page(world: RunPodInstallation, number: int, failure: Failure) -> None:
    """Let the n-th page of every list of pods fail, however often it is asked for."""
    answer = world.simulator.handle
    cursors: list[str | None] = []

    def handle(method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes) -> Response:
        if (method, path) != ("GET", "/v2/pods"):
            return answer(method, path, query, headers, body)
        if query.get("cursor") is None:
            cursors.clear()
        if query.get("cursor") not in cursors:
            cursors.append(query.get("cursor"))
        if len(cursors) == number:
            return failure.response()
        return answer(method, path, query, headers, body)

    world.simulator.handle = handle  # type: ignore[method-assign]


FAILURES = {
    "throttled": Failure(429, "rate limit exceeded for the minute window", headers={"Retry-After": "1"}),
    "broken": Failure(502, raw="<html>bad gateway</html>"),
    "refused": Failure(401, "invalid bearer token"),
    "dropped": Failure(drop=True),
    "empty": Failure(200, raw="{}"),
}


@pytest.mark.parametrize(("page", "how"), list(itertools.product((1, 2, 3), FAILURES)))
def test_failing_one_page_of_a_list_changes_no_pods_status(page: int, how: str) -> None:
    world = paged_runpod(7, at_most=3)
    names = [f"train-{number}" for number in range(7)]
    before, alive = shown(world, names), world.alive()
    fail_page(world, page, FAILURES[how])
    world.run(3)
    assert shown(world, names) == before
    assert world.alive() == alive


def test_a_delete_is_believed_by_id_while_a_page_fails_and_not_while_the_id_cannot_be_read_either() -> None:
    world = paged_runpod(7, at_most=3)
    fail_page(world, 2, FAILURES["broken"])
    instance = world.alive()[-1]
    last = next(claim.pod_name for claim in world.claims.all() if claim.instance_id == instance)
    unreadable = Failure(502, raw="<html>bad gateway</html>", method="GET", path=f"/v2/pods/{instance}", times=10_000)
    world.simulator.fail(unreadable)
    world.delete_pod(last)
    world.pump()
    world.run(2)
    assert instance not in world.alive()
    assert world.pod(last) is not None
    unreadable.times = 0
    until_true(world, lambda: world.pod(last) is None)
