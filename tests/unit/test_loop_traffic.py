"""What the loop asks and writes: one listing per provider, only changes, and late news of another uid ignored."""

from __future__ import annotations

from datetime import timedelta
from unittest.mock import patch

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from nebula.domain.claim import Phase
from nebula.events.details import DetailType
from nebula.kubernetes.api import ClusterUnavailableError
from nebula.providers.simulated import Call
from nebula.stores.claims import LedgerBusyError
from nebula.workflows.poll import STALE_AFTER, tick

from tests.support.mischief import claims, force_delete, running_pods, said
from tests.support.world import World, running


@pytest.mark.parametrize("count", [1, 25])
def test_a_tick_makes_one_listing_and_one_list_of_pods_whatever_the_number_of_claims(count: int) -> None:
    world = World()
    running_pods(world, count)
    world.simulated.script.counts.clear()
    world.emulator.calls.clear()
    world.tick()
    assert world.simulated.script.counts[Call.LIST] == 1
    assert world.simulated.script.counts[Call.GET] == 0
    assert world.emulator.calls["list", "pods"] == 1
    assert world.emulator.calls["get", "pods"] == 0


def test_a_tick_that_finds_nothing_new_writes_nothing() -> None:
    world = World()
    running_pods(world, 5)
    world.minute()
    writes, versions = world.claims.writes, [claim.version for claim in claims(world)]
    world.emulator.calls.clear()
    world.run(2)
    assert (world.claims.writes, [claim.version for claim in claims(world)]) == (writes, versions)
    written = {call for call in world.emulator.calls if call[0] in ("patch", "update", "create") and call[1] == "pods"}
    assert written == set()


def test_a_stale_tick_and_one_without_claims_do_nothing() -> None:
    world = World()
    assert world.tick().skipped == "no live claims"
    running_pods(world, 1)
    now = world.clock.now()
    late = tick(world.services("status_polling"), due_at=now - STALE_AFTER - timedelta(seconds=1), until=now)
    assert late.skipped == "stale"


def test_a_pod_recreated_under_its_name_is_another_claim_and_hears_nothing_of_the_former() -> None:
    world = World()
    running_pods(world, 1)
    former = claims(world)[0]
    force_delete(world, "train-0")
    world.create_pod("train-0")
    world.pump()
    world.run(2)
    (now,) = claims(world)
    assert now.claim_id != former.claim_id
    assert running(world.pod("train-0"))
    ended = world.claims.get(former.claim_id)
    assert ended is not None
    assert ended.phase is Phase.TERMINATED
    assert world.billed() == [now.instance_id]


def test_a_late_delete_of_the_former_uid_leaves_the_new_pod_alone() -> None:
    world = World()
    running_pods(world, 1)
    old = world.pod("train-0") or {}
    force_delete(world, "train-0")
    world.create_pod("train-0")
    world.pump()
    world.run(2)
    world.announce(DetailType.POD_DELETED, old)
    world.announce(DetailType.POD_GATED, old)
    world.pump()
    world.run(1)
    assert running(world.pod("train-0"))
    assert len(world.billed()) == 1


def test_a_terminal_pod_is_never_made_to_run_again() -> None:
    world = World()
    running_pods(world, 1)
    machine = world.simulated.console.owned()[0]
    world.simulated.console.exit(machine.id, 1)
    world.tick()
    assert (world.pod("train-0") or {})["status"]["phase"] == "Failed"
    machine.exited_at = None
    machine.changed()
    world.run(3)
    assert (world.pod("train-0") or {})["status"]["phase"] == "Failed"


def test_a_gated_pod_that_nobody_announced_is_placed_by_the_sweep() -> None:
    world = World()
    world.create_pod(announce=False)
    world.run(2)
    assert running(world.pod())


def test_one_claim_that_cannot_be_judged_does_not_blind_the_others() -> None:
    world = World()
    for number in range(3):
        world.create_pod(f"train-{number}")
    world.pump()
    real = world.api.patch_pod_status

    def breaks(namespace: str, name: str, patch: dict[str, object]) -> object:
        if name == "train-1":
            raise RuntimeError("a bug")
        return real(namespace, name, patch)

    world.api.patch_pod_status = breaks  # type: ignore[method-assign,assignment]
    world.tick()
    assert [running(world.pod(f"train-{n}")) for n in range(3)] == [True, False, True]
    assert world.telemetry.total("Defects") == 1
    assert said(world, "claim failed")[0]["claim_id"] == world.claim("train-1").claim_id


@pytest.mark.parametrize(
    "error",
    [
        LedgerBusyError("rows held"),
        ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow down"}}, "PutItem"),
        ReadTimeoutError(endpoint_url="https://dynamodb.invalid"),
        ClusterUnavailableError("no answer"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_trouble_outside_is_no_defect_of_ours(error: Exception) -> None:
    world = World()
    world.create_pod()
    world.pump()

    def fails(*_: object) -> None:
        raise error

    with patch("nebula.workflows.observe.settle", fails):
        world.tick()
    assert world.telemetry.total("Defects") == 0
    assert said(world, "claim not settled")
    world.tick()
    assert running(world.pod())
