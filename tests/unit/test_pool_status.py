"""What a NodePool shows of itself, written only when it changes."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from nebula.domain.claim import Phase
from nebula.kubernetes.node_pool_status import PoolPicture, amount, pool_status_patch
from nebula.workflows.pool_status import tend_pools

from tests.support.world import CLUSTER, START, World, pool_object


def tend(world: World) -> int:
    return tend_pools(world.services("status_polling"), world.api, list(world.claims.live(CLUSTER)))


def status(world: World) -> dict[str, Any]:
    pool = world.api.get_node_pool("pool")
    assert pool is not None
    found = pool.get("status", {})
    assert isinstance(found, dict)
    return found


def ready(world: World) -> tuple[str, str]:
    condition = next(c for c in status(world)["conditions"] if c["type"] == "Ready")
    return condition["status"], condition["reason"]


def test_a_valid_pool_is_ready_and_written_once() -> None:
    world = World()
    assert tend(world) == 1
    assert ready(world) == ("True", "Valid")
    assert (status(world)["providers"], status(world)["committedPerHour"]) == ("simulated", "0")
    assert tend(world) == 0


def test_placed_and_committed_follow_the_claims() -> None:
    world = World()
    for name in ("one", "two"):
        world.create_pod(name)
    world.pump()
    tend(world)
    assert (status(world)["placed"], status(world)["committedPerHour"]) == ({"simulated": 2}, "4")
    assert tend(world) == 0
    for name in ("one", "two"):
        world.delete_pod(name)
    world.pump()
    world.tick()
    tend(world)
    assert (status(world).get("placed", {}), status(world)["committedPerHour"]) == ({}, "0")


def test_an_unknown_provider_shows_and_heals_by_itself_and_wakes_who_waited() -> None:
    world = World()
    world.providers.keys.clear()
    world.create_pod()
    world.pump()
    assert world.claim().reason == "provider_unconfigured"
    world.minute()
    assert ready(world) == ("False", "UnknownProvider")
    since = status(world)["conditions"][0]["lastTransitionTime"]
    world.providers.keys["simulated"] = "key-2"
    world.minute(pump=False)
    assert ready(world) == ("True", "Valid")
    assert status(world)["conditions"][0]["lastTransitionTime"] > since
    world.tick()
    assert world.claim().phase is Phase.RELEASED


def test_one_missing_key_of_two_is_said_and_the_other_is_used() -> None:
    world = World(pool=pool_object("simulated", "modal"))
    tend(world)
    condition = status(world)["conditions"][0]
    assert (condition["status"], condition["reason"]) == ("False", "UnknownProvider")
    assert condition["message"] == "modal has no key here; the others are used"
    assert status(world)["providers"] == "simulated,modal"


def test_a_bad_spec_shows_with_the_field_named() -> None:
    world = World(pool=pool_object(failover={"blocklistTTL": "soon"}))
    tend(world)
    condition = status(world)["conditions"][0]
    assert (condition["status"], condition["reason"]) == ("False", "InvalidSpec")
    assert condition["message"].startswith("spec.failover.blocklistTTL: ")
    assert tend(world) == 0


def test_an_unreachable_cluster_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from nebula.kubernetes.api import ClusterUnavailableError

    world = World()

    def silent() -> list[dict[str, Any]]:
        raise ClusterUnavailableError("no answer")

    monkeypatch.setattr(world.api, "list_node_pools", silent)
    assert tend(world) == 0
    assert world.telemetry.lines[-1][1] == "node pools unknown"


def picture(**changes: Any) -> PoolPicture:
    base: dict[str, Any] = {
        "ready": True,
        "reason": "Valid",
        "message": "fine",
        "providers": ("one",),
        "placed": {},
        "committed_per_hour": Decimal(0),
    }
    return PoolPicture(**(base | changes))


def test_conditions_of_others_survive_and_the_transition_time_moves_with_the_status_only() -> None:
    foreign = {"type": "Audited", "status": "True"}
    shown = pool_status_patch({"status": {"conditions": [foreign]}}, picture(), START)
    assert shown is not None
    conditions = shown["status"]["conditions"]
    assert conditions[0] == foreign
    later = START + timedelta(hours=1)
    again = pool_status_patch({"status": {"conditions": conditions}}, picture(message="finer"), later)
    assert again is not None
    assert again["status"]["conditions"][1]["lastTransitionTime"] == "2026-11-01T12:00:00Z"
    flipped = pool_status_patch({"status": {"conditions": conditions}}, picture(ready=False), later)
    assert flipped is not None
    assert flipped["status"]["conditions"][1]["lastTransitionTime"] == "2026-11-01T13:00:00Z"


def test_a_provider_that_holds_nothing_any_more_is_removed_by_a_null() -> None:
    shown = pool_status_patch({"status": {"placed": {"one": 2, "two": 1}}}, picture(placed={"two": 1}), START)
    assert shown is not None
    assert shown["status"]["placed"] == {"one": None}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("0", "0"),
        ("0.00", "0"),
        ("2.3900", "2.39"),
        ("100", "100"),
        ("1E+2", "100"),
        ("6.7013698629", "6.7014"),
        ("0.0000000001", "0.0001"),
    ],
)
def test_amounts_are_plain_short_and_no_less_than_what_is_held(value: str, text: str) -> None:
    assert amount(Decimal(value)) == text
