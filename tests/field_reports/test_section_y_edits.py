"""Field reports, section Y: Pods that change between gate and release (Y9), events out of order (Y10)."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from nebula.domain.claim import Phase
from nebula.providers.simulated import Call
from nebula.workflows.poll import STALE_AFTER, tick

from cluster.forwarder.books import PodBook
from local.kubernetes.resources import NODE_POOLS
from tests.support.handlers import about_pod, batch, failed, handler
from tests.support.runpod_installation import RunPodInstallation, condition, events
from tests.support.simulated import make_slowly
from tests.support.world import CLUSTER, MINUTE, World, pool_object, running, until_true

Object = dict[str, Any]
FOREIGN = {"name": "example.com/quota"}
OURS = {"name": "nebula.inftyai.com/provider-selection"}
LABEL = "nebula.inftyai.com/"
EDITS: dict[str, Object] = {
    "accelerator label": {"metadata": {"labels": {f"{LABEL}accelerator-type": "a100-80gb"}}},
    "nodepool label": {"metadata": {"labels": {f"{LABEL}nodepool": "other"}}},
    "image": {"spec": {"containers": [{"name": "main", "image": "registry.example.com/train:2"}]}},
}


def _edit(world: World, patch: Object, name: str = "train") -> None:
    """``kubectl edit``: a patch that the user makes."""
    headers = {"Content-Type": "application/strategic-merge-patch+json"}
    path = f"/api/v1/namespaces/default/pods/{name}"
    answer = world.emulator.handle("PATCH", path, {}, headers, json.dumps(patch).encode())
    assert answer.status == 200, answer.body


def _other_pool(world: World, *providers: str) -> None:
    pool = pool_object(*providers)
    world.emulator.create(NODE_POOLS, "", {**pool, "metadata": {"name": "other"}})


def _placed(world: World) -> None:
    """Deliver the first event alone: the claim is placed, nothing is bought yet."""
    world.deliver(world.queue.pop(0))
    assert world.claim().phase is Phase.PLACED


@pytest.mark.parametrize("edit", EDITS)
def test_y9_a_pod_edited_between_its_placement_and_the_create_is_decided_again_and_bought_as_it_is_now(
    edit: str,
) -> None:
    world = RunPodInstallation()
    _other_pool(world, "runpod")
    world.create_pod()
    _placed(world)
    _edit(world, EDITS[edit])
    world.pump()
    until_true(world, lambda: running(world.pod()), minutes=4)
    bought, claim = world.created(), world.claim()
    assert ("A100" in bought["gpu"]["id"]) is (edit == "accelerator label")
    assert (claim.node_pool == "other") is (edit == "nodepool label")
    assert (bought["image"] == "registry.example.com/train:2") is (edit == "image")


@pytest.mark.parametrize("edit", EDITS)
def test_y9_a_pod_edited_while_its_machine_is_being_made_gives_it_back_and_gets_another(edit: str) -> None:
    world = _queueing()
    _other_pool(world, "simulated")
    world.create_pod()
    world.pump()
    assert world.claim().phase is Phase.PROVISIONED
    (first,) = world.billed()
    sold_here = {"metadata": {"labels": {f"{LABEL}accelerator-type": "a100"}}}
    _edit(world, sold_here if edit == "accelerator label" else EDITS[edit])
    until_true(world, lambda: running(world.pod()), minutes=8)
    (second,) = world.billed()
    assert first != second
    assert world.claim().instance_id == second
    assert world.simulated.script.counts[Call.PROVISION] == 2


def _queueing() -> World:
    """A world whose provider takes 50 s until a machine runs, and shows the Pod only then."""
    world = World()
    make_slowly(world.simulated, boot=timedelta(seconds=50))
    return world


def test_y9_a_pod_that_is_bound_already_is_left_alone() -> None:
    world = World()
    world.create_pod(schedulingGates=[], nodeName="somebody-elses-node")
    world.pump()
    world.run(2)
    assert list(world.claims.live(CLUSTER)) == []
    assert world.billed() == []
    assert (world.pod() or {})["spec"]["nodeName"] == "somebody-elses-node"


@pytest.mark.parametrize("made", [False, True], ids=["before the create", "after the create"])
def test_y9_a_gate_that_somebody_else_removed_ends_the_claim_and_what_was_bought(made: bool) -> None:
    world = _queueing()
    world.create_pod()
    _placed(world)
    if made:
        world.pump()
    _edit(world, {"spec": {"schedulingGates": [{"$patch": "delete", **OURS}]}})
    world.pump()
    world.run(6)
    assert world.billed() == []
    assert world.claim().phase is Phase.TERMINATED
    assert not (world.pod() or {})["metadata"].get("annotations")


def test_y9_a_pod_behind_other_gates_is_not_ours_until_they_are_gone() -> None:
    world = World()
    world.create_pod(schedulingGates=[FOREIGN, OURS])
    world.pump()
    world.run(3)
    assert world.billed() == []
    _edit(world, {"spec": {"schedulingGates": [{"$patch": "delete", **FOREIGN}]}})
    until_true(world, lambda: running(world.pod()), minutes=3)
    assert len(world.billed()) == 1


def test_y9_a_foreign_node_selector_is_named_and_nothing_is_bought() -> None:
    world = World()
    world.create_pod(nodeSelector={"disktype": "ssd"})
    world.pump()
    world.run(2)
    assert "node_unsuitable" in condition(world.pod())["message"]
    assert "disktype=ssd is not a label of the Node" in condition(world.pod())["message"]
    assert world.billed() == []


@pytest.mark.parametrize("times", [1, 3, 12])
def test_y9_a_release_that_meets_a_conflict_is_read_again_and_repeated(times: int) -> None:
    world = World()
    writes = iter(range(times))

    def somebody_writes_first(method: str, path: str) -> None:
        number = next(writes, None) if method == "PATCH" and path.endswith("/pods/train") else None
        if number is not None:
            _touch(world, number)

    world.emulator.faults.append(somebody_writes_first)
    world.create_pod()
    world.pump()
    until_true(world, lambda: running(world.pod()), minutes=4)
    assert (world.pod() or {})["metadata"]["annotations"]["touched"] == str(times - 1)
    assert world.simulated.script.counts[Call.PROVISION] == len(world.billed()) == 1


def _touch(world: World, number: int) -> None:
    faults, world.emulator.faults = world.emulator.faults, []
    _edit(world, {"metadata": {"annotations": {"touched": str(number)}}})
    world.emulator.faults = faults


def test_y10_an_added_after_the_deleted_buys_nothing() -> None:
    world = World()
    pod = world.create_pod()
    world.delete_pod()
    gated, deleted = world.queue
    for envelope in (deleted, gated, deleted, gated):
        world.deliver(envelope)
    world.queue.clear()
    world.run(2)
    assert list(world.claims.live(CLUSTER)) == []
    assert world.simulated.script.counts[Call.PROVISION] == 0
    assert failed(handler("placement", world)(batch(about_pod("Pod Gated", pod)))) == []


@pytest.mark.parametrize("version", ["1", "999999999999", "not-a-number", ""])
def test_y10_a_change_with_any_resource_version_leads_to_a_read_and_never_to_a_comparison(version: str) -> None:
    world = World(pool=pool_object("simulated", capacityTypes=["OnDemand"]))
    pod = world.create_pod(announce=False, labels={f"{LABEL}accelerator-type": "not-sold"})
    placement = handler("placement", world)
    placement(batch(about_pod("Pod Gated", pod)))
    assert world.claim().phase is Phase.PENDING
    _edit(world, {"metadata": {"labels": {f"{LABEL}accelerator-type": "h100"}}})
    envelope = about_pod("Pod Changed", pod)
    envelope["detail"]["resource_version"] = version
    assert failed(placement(batch(envelope, envelope))) == []
    world.pump()
    assert world.claim().phase is Phase.RELEASED
    assert len(world.billed()) == 1


def test_y10_a_forwarder_that_sees_an_older_version_after_a_newer_one_only_hints_again() -> None:
    world = World()
    old = world.create_pod(announce=False)
    _edit(world, EDITS["image"])
    new = world.pod() or {}
    book = PodBook(CLUSTER)
    told = [str(event.detail_type) for version in (old, new, old, new) for event in book.see(version)]
    assert told == ["Pod Gated", "Pod Changed", "Pod Changed", "Pod Changed"]


def test_y10_late_events_of_an_earlier_pod_of_the_name_touch_neither_the_new_pod_nor_buy_for_the_old() -> None:
    world = World()
    old = world.create_pod(announce=False)
    world.delete_pod(announce=False)
    world.create_pod()
    world.pump()
    world.tick()
    (instance,) = world.billed()
    for kind in ("Pod Deleted", "Pod Gated", "Pod Changed", "Pod Deleted"):
        world.queue.append(about_pod(kind, old))
    world.pump()
    world.run(2)
    assert running(world.pod())
    assert world.billed() == [instance]


def test_y10_a_late_tick_is_dropped_and_a_doubled_one_finds_its_work_done() -> None:
    world = World()
    world.create_pod()
    world.pump()
    services, now = world.services("status_polling"), world.clock.now()
    late = tick(services, due_at=now - STALE_AFTER - timedelta(seconds=1), until=now + MINUTE)
    assert late.skipped == "stale"
    world.tick()
    again = tick(services, due_at=world.clock.now(), until=world.clock.now() + MINUTE)
    assert again.skipped == "done just now"


def test_y9_a_pod_edited_after_its_release_keeps_its_instance_and_is_warned_once() -> None:
    world = World()
    world.create_pod()
    world.pump()
    world.run(1)
    assert events(world, "ChangedAfterRelease") == []
    bought = world.billed()
    _edit(world, EDITS["image"])
    world.run(3)
    assert running(world.pod())
    assert world.billed() == bought
    (warned,) = events(world, "ChangedAfterRelease")
    assert (warned["type"], warned["count"]) == ("Warning", 1)
    shown = (world.pod() or {})["status"]["containerStatuses"][0]["image"]
    assert shown == "registry.example.com/train:1"
    assert bought[0] in warned["message"]


def test_y9_a_released_pod_that_opts_out_is_kept_warned_once_and_its_status_stays_true() -> None:
    world = World()
    world.create_pod()
    world.pump()
    world.tick()
    bought = world.billed()
    _edit(world, {"metadata": {"labels": {f"{LABEL}enabled": None}}})
    world.emulator.controllers.lapse("nebula-simulated")
    assert not running(world.pod())
    world.run(2)
    assert running(world.pod())
    assert world.billed() == bought
    (warned,) = events(world, "OptedOut")
    assert warned["count"] == 1
    world.delete_pod(announce=False)
    until_true(world, lambda: world.pod() is None and world.billed() == [], minutes=4)
