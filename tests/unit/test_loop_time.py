"""Running out of time: a run begins nothing new too late, says where it stopped, and the next goes on from there."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from nebula import http
from nebula.aws import LONGEST_CALL_SECONDS
from nebula.kubernetes import transport
from nebula.lifecycle.observation import ABSENCE_GAP
from nebula.providers.simulated import Call
from nebula.wiring import limits_of, longest_call_of
from nebula.workflows.orphans import OrphanPolicy
from nebula.workflows.poll import SWEEP_TIME, WRAP_UP, PollReport, reserve, scheduled, tick

from tests.support.cloudformation import properties
from tests.support.mischief import claims, running_pods, said
from tests.support.world import World, running

SECOND = timedelta(seconds=1)
FUNCTIONS = ["placement", "provisioning", "status_polling", "credential_retirement"]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_longest_call_is_no_shorter_than_any_limit_of_the_function(function: str) -> None:
    provider, cluster = limits_of(function)
    assert longest_call_of(function).total_seconds() == max(provider.total, cluster.total, LONGEST_CALL_SECONDS)


def test_what_is_kept_back_follows_from_the_longest_call() -> None:
    services = World().services("status_polling")
    assert reserve(services) == services.longest_call + WRAP_UP
    assert services.longest_call == longest_call_of("status_polling")


def test_the_function_s_time_leaves_a_scheduled_look_and_a_tick_enough_to_work_in() -> None:
    timeout = timedelta(seconds=properties("StatusPollingFunction")["Timeout"])
    kept = longest_call_of("status_polling") + WRAP_UP
    cluster = timedelta(seconds=limits_of("status_polling")[1].total)
    # A hanging cluster is met twice: by the beat and by the look, each at the same time as the others.
    assert timeout - kept - SWEEP_TIME - 2 * cluster > timedelta(0)
    assert timeout - kept - 2 * cluster >= 20 * SECOND


def test_a_catalog_that_hangs_leaves_placement_time_to_place_from_the_shipped_one() -> None:
    """RunPod's catalog is three reads, each as slow as it may be; the first that fails ends them."""
    timeout = properties("PlacementFunction")["Timeout"]
    assert timeout - 3 * limits_of("placement")[0].total >= 10


def test_the_others_are_in_no_such_hurry() -> None:
    assert limits_of("provisioning") == (http.Limits(), transport.LIMITS)


class SlowWorld(World):
    """Each status patch takes a second; ``told`` are the Pods in the order in which they heard."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.told: list[str] = []
        for number in range(count):
            self.create_pod(f"train-{number:02}")
        self.pump()
        self.real: Any = self.api.patch_pod_status
        self.api.patch_pod_status = self._slow  # type: ignore[method-assign,assignment]

    def _slow(self, namespace: str, name: str, patch: dict[str, Any]) -> Any:
        self.clock.advance(SECOND)
        self.told.append(name)
        return self.real(namespace, name, patch)

    def short_tick(self, seconds: int) -> PollReport:
        """A tick with this much time to work in."""
        services = self.services("status_polling")
        self.clock.advance(20 * SECOND)
        until: datetime = self.clock.now() + seconds * SECOND + reserve(services)
        return tick(services, due_at=self.clock.now(), until=until)


def test_a_tick_that_runs_out_of_time_stops_and_says_where() -> None:
    world = SlowWorld(40)
    report = world.short_tick(10)
    assert report.cut_short
    assert 10 <= report.handled < 40
    line = said(world, "look cut short")[-1]
    assert (line["handled"], line["left"]) == (report.handled, 40 - report.handled)
    assert line["next_claim"] in {claim.claim_id for claim in claims(world)}


def test_the_next_tick_goes_on_from_there_and_nobody_is_passed_over() -> None:
    world = SlowWorld(40)
    turns = []
    for _ in range(4):
        before = len(world.told)
        world.short_tick(10)
        turns.append(set(world.told[before:]))
    assert set().union(*turns) == {f"train-{number:02}" for number in range(40)}
    assert turns[0].isdisjoint(turns[1])
    assert all(running(world.pod(f"train-{number:02}")) for number in range(40))


def test_the_next_tick_begins_with_the_very_claim_that_was_left() -> None:
    world = SlowWorld(40)
    world.short_tick(10)
    left = said(world, "look cut short")[-1]["next_claim"]
    name = next(claim.pod_name for claim in claims(world) if claim.claim_id == left)
    before = len(world.told)
    world.short_tick(3)
    assert name in world.told[before:]


def test_a_look_that_reached_all_forgets_where_the_last_one_stopped() -> None:
    world = SlowWorld(20)
    world.short_tick(5)
    assert world.sightings.recall("look/next")
    world.short_tick(1000)
    assert world.sightings.recall("look/next") == ""


def test_a_claim_that_is_gone_is_no_place_to_get_lost_at() -> None:
    world = SlowWorld(20)
    world.sightings.note("look/next", "f" * 32, world.clock.now())
    assert world.short_tick(1000).handled == 20


def test_a_tick_without_any_time_left_does_nothing_and_harms_nobody() -> None:
    world = SlowWorld(3)
    report = world.short_tick(0)
    assert (report.handled, report.cut_short) == (0, True)
    assert not world.short_tick(1000).cut_short


def test_a_sweep_that_runs_out_of_time_says_where() -> None:
    world = World()
    running_pods(world, 1)
    services = world.services("status_polling")
    world.clock.advance(timedelta(minutes=1))
    scheduled(services, policy=OrphanPolicy(), until=world.clock.now())
    assert said(world, "sweep cut short") == [{"next_cluster": "test"}]
    assert len(world.billed()) == 1


def test_two_ticks_at_once_do_no_harm() -> None:
    world = World()
    names = [f"train-{number}" for number in range(5)]
    for name in names:
        world.create_pod(name)
    world.pump()
    world.clock.advance(20 * SECOND)
    services = world.services("status_polling")

    def meanwhile(call: Call, _subject: object) -> None:
        if call is Call.LIST:
            world.simulated.script.before_each(None)
            world.clock.advance(ABSENCE_GAP)
            tick(services, due_at=world.clock.now(), until=world.clock.now() + timedelta(minutes=1))

    world.simulated.script.before_each(meanwhile)
    world.tick()
    assert all(running(world.pod(name)) for name in names)
    assert len(world.billed()) == 5
    assert world.telemetry.total("Defects") == 0
