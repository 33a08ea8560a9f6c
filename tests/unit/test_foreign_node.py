"""A Node of a provider's name that is somebody's own machine: never written, never deleted, named as the trouble."""

from __future__ import annotations

import json

from nebula.domain.claim import Phase
from nebula.kubernetes.names import LABEL_PROVIDER
from nebula.workflows.explain import explain_pod

from local.kubernetes.resources import NODES
from tests.support.placements import placed_only
from tests.support.world import CLUSTER, Object, World, running

NAME = "nebula-simulated"


def _theirs(world: World) -> Object:
    """A machine of four cores that somebody called so."""
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    status = {"allocatable": capacity, "conditions": [ready], "nodeInfo": {"kubeletVersion": "v1.36.3"}}
    return world.emulator.create(NODES, "", {"metadata": {"name": NAME}, "spec": {}, "status": status})


def _unlabel(world: World) -> None:
    body = json.dumps({"metadata": {"labels": {LABEL_PROVIDER: None}}}).encode()
    merge = {"Content-Type": "application/merge-patch+json"}
    assert world.emulator.handle("PATCH", f"/api/v1/nodes/{NAME}", {}, merge, body).status == 200
    assert LABEL_PROVIDER not in (world.api.get_node(NAME) or {})["metadata"]["labels"]


def test_it_is_never_written_and_never_deleted() -> None:
    world = World()
    world.create_pod()
    before = _theirs(world)
    world.pump()
    world.run(15)
    after = world.api.get_node(NAME)
    assert after is not None
    assert (after["metadata"]["uid"], after["status"]) == (before["metadata"]["uid"], before["status"])
    assert world.api.get_lease(NAME) is None
    assert (world.claim().phase, world.claim().reason) == (Phase.PENDING, "node_not_ready")


def test_explain_says_what_placement_says() -> None:
    world = World()
    pod = world.create_pod()
    _theirs(world)
    told = explain_pod(world.services("placement"), pod, None, CLUSTER)
    world.pump()
    assert (told["placed"], told["reason"]) == (False, "node_not_ready")
    assert told["message"] == world.claim().message


def test_a_node_of_ours_that_lost_its_label_is_beaten_on_and_takes_no_new_pod() -> None:
    world = World()
    world.create_pod()
    world.pump()
    world.tick()
    _unlabel(world)
    renewed = (world.api.get_lease(NAME) or {})["spec"]["renewTime"]
    world.run(2)
    assert (world.api.get_lease(NAME) or {})["spec"]["renewTime"] > renewed
    assert running(world.pod())
    world.create_pod("other")
    world.pump()
    assert world.claim("other").reason == "node_not_ready"


def test_nothing_is_bought_or_released_for_a_node_whose_label_went_after_the_placement() -> None:
    world = World()
    placed_only(world)
    _unlabel(world)
    world.pump()
    world.run(2)
    assert world.billed() == []
    assert world.claim().phase is Phase.PENDING
