"""Field reports, section Y: what a user may delete while claims live (Y11)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from nebula.domain.claim import Phase, claim_id_for

from local.kubernetes.resources import NAMESPACES, NODE_POOLS, PODS
from local.kubernetes.server import Response
from tests.support.handlers import about_pod
from tests.support.runpod_installation import condition
from tests.support.world import CLUSTER, World, pod_object, pool_object, running, until_true

Object = dict[str, Any]
POOL = "/apis/nebula.inftyai.com/v1alpha1/nodepools/pool"
TOLD = pytest.mark.parametrize("told", [True, False], ids=["told", "found by the sweep"])


def _delete(world: World, path: str, **query: str) -> None:
    assert world.emulator.handle("DELETE", path, query, {}, b"").status == 200


def _nothing_left(world: World) -> bool:
    return world.billed() == [] and not list(world.claims.live(CLUSTER)) and world.committed() == 0


def _running_in(namespace: str, names: tuple[str, ...] = ("train",)) -> World:
    """Pods that run in a namespace."""
    world = World()
    if namespace != "default":
        world.emulator.create(NAMESPACES, "", {"metadata": {"name": namespace}})
    for name in names:
        world.queue.append(about_pod("Pod Gated", world.emulator.create(PODS, namespace, pod_object(name))))
    world.pump()
    world.tick()
    assert all(running(world.emulator.read(PODS, namespace, name)) for name in names)
    return world


@TOLD
def test_y11_a_deleted_namespace_ends_the_instances_of_its_pods_and_goes_itself(told: bool) -> None:
    names = ("one", "two")
    world = _running_in("team", names)
    gated = world.emulator.create(PODS, "team", pod_object("gated", nodeSelector={"no": "node"}))
    world.queue.append(about_pod("Pod Gated", gated))
    world.pump()
    pods = [gated, *(world.emulator.read(PODS, "team", name) or {} for name in names)]
    _delete(world, "/api/v1/namespaces/team")
    assert (world.emulator.read(NAMESPACES, "", "team") or {})["metadata"]["deletionTimestamp"]
    if told:
        world.queue += [about_pod("Pod Deleted", pod) for pod in pods]
    world.pump()
    until_true(world, lambda: _nothing_left(world), minutes=5)
    assert world.emulator.read(NAMESPACES, "", "team") is None


@TOLD
def test_y11_a_forced_delete_ends_the_instance_and_a_new_pod_of_the_name_gets_its_own(told: bool) -> None:
    world = _running_in("default")
    (first,) = world.billed()
    old = world.pod() or {}
    _delete(world, "/api/v1/namespaces/default/pods/train", gracePeriodSeconds="0")
    assert world.pod() is None
    world.create_pod()
    if told:
        world.queue.append(about_pod("Pod Deleted", old))
    world.pump()
    until_true(world, lambda: running(world.pod()) and first not in world.billed(), minutes=5)
    assert world.billed() == [world.claim().instance_id]
    world.run(1)
    ended = world.claims.get(claim_id_for(CLUSTER, old["metadata"]["uid"]))
    assert ended is not None
    assert ended.phase is Phase.TERMINATED


def test_y11_we_put_no_finalizer_on_a_pod_so_nobody_has_to_remove_one_by_hand() -> None:
    world = _running_in("default")
    assert "finalizers" not in (world.pod() or {})["metadata"]


@pytest.mark.parametrize("removed", ["at once", "after the end"])
def test_y11_a_finalizer_that_is_removed_by_hand_early_or_late_changes_nothing_for_the_instance(removed: str) -> None:
    world = World()
    held = pod_object()
    held["metadata"]["finalizers"] = ["example.com/hold"]
    world.queue.append(about_pod("Pod Gated", world.emulator.create(PODS, "default", held)))
    world.pump()
    world.tick()
    assert running(world.pod())
    world.delete_pod()
    if removed == "at once":
        _remove_finalizer(world)
    world.pump()
    until_true(world, lambda: _nothing_left(world), minutes=4)
    if removed == "after the end":
        assert (world.pod() or {})["metadata"]["deletionTimestamp"]
        world.run(2)
        _remove_finalizer(world)
    world.run(2)
    assert world.pod() is None
    assert _nothing_left(world)


def _remove_finalizer(world: World) -> None:
    patch = json.dumps({"metadata": {"finalizers": None}}).encode()
    headers = {"Content-Type": "application/merge-patch+json"}
    path = "/api/v1/namespaces/default/pods/train"
    assert world.emulator.handle("PATCH", path, {}, headers, patch).status == 200


def test_y11_a_nodepool_that_is_deleted_while_its_claims_live_takes_no_running_pod_along() -> None:
    world = _running_in("default")
    (instance,) = world.billed()
    world.create_pod("late")
    _delete(world, POOL)
    world.pump()
    world.run(3)
    assert running(world.pod())
    assert world.billed() == [instance]
    assert "NodePoolNotFound: NodePool pool does not exist" in condition(world.pod("late"))["message"]
    world.delete_pod()
    world.delete_pod("late")
    world.pump()
    until_true(world, lambda: _nothing_left(world), minutes=4)


def test_y11_a_nodepool_that_goes_between_placement_and_create_buys_nothing_until_it_is_back() -> None:
    world = World()
    world.create_pod()
    world.deliver(world.queue.pop())
    assert world.claim().phase is Phase.PLACED
    _delete(world, POOL)
    world.pump()
    world.run(2)
    assert world.billed() == []
    assert "NodePool pool does not exist" in condition(world.pod())["message"]
    world.emulator.create(NODE_POOLS, "", pool_object())
    until_true(world, lambda: running(world.pod()), minutes=8)


def test_y11_a_cluster_that_lost_the_whole_nodepool_kind_keeps_its_running_pods_and_ends_deleted_ones() -> None:
    world = _running_in("default", ("keep", "drop"))

    def no_such_kind(method: str, path: str) -> Response | None:
        return Response(404, {"Content-Type": "text/plain"}, b"404 page not found\n") if "nodepools" in path else None

    world.emulator.faults.append(no_such_kind)
    world.run(3)
    assert running(world.pod("keep"))
    world.delete_pod("drop")
    world.pump()
    until_true(world, lambda: world.pod("drop") is None and len(world.billed()) == 1, minutes=4)
    assert running(world.pod("keep"))


def test_y11_a_virtual_node_that_is_deleted_by_hand_ends_its_pods_and_their_instances_and_comes_back() -> None:
    world = _running_in("default")
    (first,) = world.billed()
    _delete(world, "/api/v1/nodes/nebula-simulated")
    assert world.emulator.controllers.collect_garbage() == 1
    world.create_pod("next")
    world.pump()
    until_true(world, lambda: running(world.pod("next")) and first not in world.billed(), minutes=5)
    assert world.pod() is None
    assert world.billed() == [world.claim("next").instance_id]
