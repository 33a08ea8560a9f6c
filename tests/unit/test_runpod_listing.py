"""Lists: every page or none of its certainty. An incomplete list is never taken as complete."""

from __future__ import annotations

import json
from typing import Any

import pytest
from nebula.domain.instance import InstanceListing
from nebula.providers.errors import AuthenticationError, ProviderError, ProviderUnavailableError, RateLimitedError

from local.runpod.faults import Failure
from local.runpod.paging import PageStyle
from tests.support.runpod import START, SXM, RunPodWorld, mark, request


def world_with(pods: int, style: PageStyle | None = None) -> RunPodWorld:
    world = RunPodWorld()
    for number in range(pods):
        world.provider.provision(request(of=mark(number + 1), name=f"pod-{number}"))
    world.account.pages = style or PageStyle()
    return world


def scripted(world: RunPodWorld, content: Any, *, status: int = 200) -> None:
    world.simulator.fail(Failure(status, method="GET", path="/v2/pods", raw=json.dumps(content)))


def complete(listing: InstanceListing) -> bool:
    return "" in listing.complete_scopes


@pytest.mark.parametrize("style", [PageStyle(), PageStyle("none"), PageStyle(at_most=7), PageStyle(at_most=1)])
def test_every_page_is_read_however_short(style: PageStyle) -> None:
    world = world_with(23, style)
    listing = world.provider.list_instances()
    assert complete(listing)
    assert listing.failed_scopes == {}
    assert {one.mark.claim_id for one in listing.instances if one.mark} == {f"{n + 1:032x}" for n in range(23)}
    assert len(listing.instances) == 23
    assert listing.began_at == START


def test_a_mark_on_the_last_page_is_found() -> None:
    world = world_with(23, PageStyle(at_most=5))
    found = world.provider.find(mark(1))
    assert found is not None
    assert found.name == "pod-0"
    assert world.provider.find(mark(99)) is None


@pytest.mark.parametrize("mode", ["repeat", "lost"])
def test_a_list_that_cannot_be_finished_proves_no_absence(mode: str) -> None:
    world = world_with(5, PageStyle(mode, at_most=2))
    listing = world.provider.list_instances()
    assert not complete(listing)
    assert "cursor" in listing.failed_scopes[""]
    with pytest.raises(ProviderUnavailableError, match="not complete"):
        world.provider.find(mark(99))


def test_a_positive_find_needs_no_complete_list() -> None:
    world = world_with(5, PageStyle("lost", at_most=2))
    assert world.provider.find(mark(5)) is not None


@pytest.mark.parametrize("status", [401, 403, 429, 422, 500])
def test_a_later_page_that_fails_leaves_an_incomplete_list(status: int) -> None:
    world = world_with(9, PageStyle(at_most=4))
    first = json.loads(world.simulator.handle("GET", "/v2/pods", {"limit": "200"}, AUTH, b"").body)
    scripted(world, first)
    world.simulator.fail(Failure(status, method="GET", path="/v2/pods", times=3))
    listing = world.provider.list_instances()
    assert not complete(listing)
    assert len(listing.instances) == 4
    assert "page 2" in listing.failed_scopes[""]


@pytest.mark.parametrize(
    ("status", "expected"),
    [(401, AuthenticationError), (403, AuthenticationError), (429, RateLimitedError), (500, ProviderUnavailableError)],
)
def test_a_first_page_that_fails_raises(status: int, expected: type[ProviderError]) -> None:
    world = world_with(1)
    for call in (world.provider.list_instances, lambda: world.provider.find(mark())):
        world.simulator.fail(Failure(status, method="GET", path="/v2/pods", times=3))
        with pytest.raises(expected):
            call()
        world.account.faults.clear()


AUTH = {"Authorization": "Bearer k"}
OURS = {"id": "a", "env": {"NEBULA_INSTALLATION": "i", "NEBULA_CLAIM": "c", "NEBULA_ATTEMPT": "1"}}


@pytest.mark.parametrize(
    "content",
    [
        [],
        {},
        {"pods": None},
        {"pods": {}},
        {"pods": "none"},
        "text",
        None,
        {"data": {"pods": []}},
        {"pods": [7]},
        {"pods": [{"name": "no id"}]},
        {"pods": [{"id": ""}]},
    ],
)
def test_what_is_no_list_raises_and_never_reads_as_empty(content: Any) -> None:
    world = RunPodWorld()
    scripted(world, content)
    with pytest.raises(ProviderUnavailableError):
        world.provider.list_instances()


def test_one_unreadable_row_makes_the_list_incomplete() -> None:
    world = RunPodWorld()
    scripted(world, {"pods": [OURS, {"name": "no id"}]})
    listing = world.provider.list_instances()
    assert [one.id for one in listing.instances] == ["a"]
    assert not complete(listing)


@pytest.mark.parametrize(
    ("pagination", "whole"),
    [
        (None, True),
        ({}, True),
        ({"hasNextPage": False}, True),
        ({"hasNextPage": False, "nextCursor": "x"}, True),
        ({"nextCursor": None}, True),
        ({"hasNextPage": True}, False),
        ({"hasNextPage": True, "nextCursor": None}, False),
        ({"hasNextPage": True, "nextCursor": ""}, False),
        ({"hasNextPage": True, "nextCursor": 5}, False),
        ({"hasNextPage": "yes", "nextCursor": "x"}, False),
        ([], False),
        ("x", False),
    ],
)
def test_only_pagination_tells_whether_more_follow(pagination: Any, whole: bool) -> None:
    world = RunPodWorld()
    scripted(world, {"pods": [OURS], "pagination": pagination})
    assert complete(world.provider.list_instances()) is whole


def test_a_cursor_without_a_flag_is_followed() -> None:
    world = RunPodWorld()
    scripted(world, {"pods": [OURS], "pagination": {"nextCursor": "next"}})
    scripted(world, {"pods": [OURS | {"id": "b"}]})
    assert {one.id for one in world.provider.list_instances().instances} == {"a", "b"}
    assert [one.query.get("cursor") for one in world.account.requests] == [None, "next"]


def test_a_row_on_two_pages_counts_once() -> None:
    world = RunPodWorld()
    scripted(world, {"pods": [OURS], "pagination": {"nextCursor": "n", "hasNextPage": True}})
    scripted(world, {"pods": [OURS]})
    listing = world.provider.list_instances()
    assert len(listing.instances) == 1
    assert complete(listing)


def test_pages_that_grow_too_large_are_asked_for_smaller() -> None:
    world = RunPodWorld()
    for number in range(100):
        world.provider.provision(request(of=mark(number + 1), env={"BIG": "x" * 99_000}))
    listing = world.provider.list_instances()
    assert complete(listing)
    assert len(listing.instances) == 100
    asked = [one.query["limit"] for one in world.account.requests if one.method == "GET"]
    assert asked == ["200"] + ["20"] * 5


def test_a_pod_whose_env_the_list_leaves_out_is_read_singly() -> None:
    world = world_with(2)
    newest = list(world.account.pods.values())[-1]
    row = newest.render(world.clock.now())
    del row["env"]
    scripted(world, {"pods": [row]})
    found = world.provider.find(mark(2))
    assert found is not None
    assert found.id == newest.id


def test_a_pod_that_never_tells_its_env_proves_no_absence() -> None:
    world = world_with(1)
    next(iter(world.account.pods.values())).hidden = frozenset({"env"})
    listing = world.provider.list_instances()
    assert not complete(listing)
    assert "without env" in listing.failed_scopes[""]
    with pytest.raises(ProviderUnavailableError):
        world.provider.find(mark(1))


@pytest.mark.parametrize("env", [None, {}, {"NEBULA_CLAIM": "c"}, {"NEBULA_ATTEMPT": 1}])
def test_a_pod_without_a_whole_mark_is_foreign(env: Any) -> None:
    world = RunPodWorld()
    scripted(world, {"pods": [{"id": "a", "env": env}]})
    listing = world.provider.list_instances()
    assert [one.mark for one in listing.instances] == [None]
    assert complete(listing)


@pytest.mark.parametrize("attempt", ["", "x", "-1", "1.0", "٣", "1" * 30])
def test_a_mark_with_a_bad_attempt_is_no_mark(attempt: str) -> None:
    world = RunPodWorld()
    env = {"NEBULA_INSTALLATION": "i", "NEBULA_CLAIM": "c", "NEBULA_ATTEMPT": attempt}
    scripted(world, {"pods": [{"id": "a", "env": env}]})
    assert [one.mark for one in world.provider.list_instances().instances] == [None]


def test_a_new_pod_may_be_missing_for_a_while() -> None:
    """What ``visibility_delay`` is for: an absence counts only after it."""
    world = RunPodWorld()
    world.account.timing.visible = world.provider.capabilities.visibility_delay
    made = world.provider.provision(request())
    assert world.provider.find(mark()) is None
    world.pass_time(world.provider.capabilities.visibility_delay.total_seconds())
    found = world.provider.find(mark())
    assert found is not None
    assert found.id == made.id
    assert found.instance_type == SXM
