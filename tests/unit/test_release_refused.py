"""A release that the API server refuses, and a Pod that somebody else let go: nothing is billed for them for good."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from nebula.domain.claim import Phase, claim_id_for
from nebula.kubernetes.api import ClusterUnavailableError, ConflictError, ForbiddenError, InvalidError
from nebula.providers.simulated import Behaviour

from local.kubernetes.resources import EVENTS, PODS
from tests.support.world import CLUSTER, World, pool_object, running, until_true

POD = "/api/v1/namespaces/default/pods/train"
RELEASED = "nebula.inftyai.com/Released"
#: What an API server takes of annotations, in bytes of keys and values.
FULL = 256 * 1024
Patch = Mapping[str, Any]


def shown(world: World) -> dict[str, Any]:
    """The condition that says why the Pod waits."""
    pod = world.pod()
    assert pod is not None
    found: list[dict[str, Any]] = pod["status"].get("conditions", [])
    return next((c for c in found if c["type"] == RELEASED), {})


def refuse(world: World, *errors: Exception) -> list[Patch]:
    """Answer patches of Pods with these errors, the last one for ever; returns the patches."""
    made: list[Patch] = []

    def patch(_namespace: str, _name: str, body: Patch) -> dict[str, Any]:
        made.append(body)
        raise errors[min(len(made), len(errors)) - 1]

    world.api.patch_pod = patch  # type: ignore[method-assign,assignment]
    return made


def act(world: World, method: str, path: str, body: str = "", kind: str = "application/json") -> int:
    """What an administrator does."""
    return world.emulator.handle(method, path, {}, {"Content-Type": kind}, body.encode())[0]


def test_a_refused_release_gives_its_machine_back_and_the_pod_says_why() -> None:
    world = World()
    made = refuse(world, ForbiddenError("PATCH pods: 403"))
    world.create_pod()
    world.pump()
    claim = world.claim()
    assert claim.phase is Phase.WITHDRAWING
    assert len(made) == 1
    assert (shown(world)["status"], shown(world)["reason"]) == ("False", "ReleaseRefused")
    assert "403" in shown(world)["message"]
    world.run(2)
    assert claim.instance_id not in world.billed()


def test_a_refused_release_after_one_without_an_answer_moves_the_version_by_way_of_the_status() -> None:
    world = World()
    pass_through = world.api.patch_pod
    made = refuse(world, ClusterUnavailableError("timeout"), ForbiddenError("PATCH pods: 403"))
    world.create_pod()
    world.pump()
    first = world.claim().instance_id
    assert world.claim().phase is Phase.RELEASING
    world.run(1)
    assert first not in world.billed()
    with pytest.raises(ConflictError):
        pass_through("default", "train", made[0])


def test_what_keeps_a_bought_instance_waiting_is_said_on_its_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    monkeypatch.setattr("nebula.workflows.release.node_trouble", lambda *_: "Node nebula-simulated is not Ready")
    world.create_pod()
    world.pump()
    assert world.claim().phase is Phase.PROVISIONED
    assert shown(world)["reason"] == "Provisioning"
    assert "nebula-simulated is not Ready" in shown(world)["message"]


def test_nothing_is_bought_for_a_pod_whose_annotations_are_full_until_they_are_not() -> None:
    world = World()
    world.create_pod(annotations={"big": "x" * (FULL - len("big"))})
    world.pump()
    world.run(2)
    assert world.billed() == []
    assert world.claim().reason == "AnnotationsFull"
    assert "256 KiB" in shown(world)["message"]
    body = '{"metadata": {"annotations": {"big": null}}}'
    assert act(world, "PATCH", POD, body, "application/merge-patch+json") == 200
    until_true(world, lambda: running(world.pod()))


@pytest.mark.parametrize("deleted", [False, True])
def test_a_pod_that_was_let_go_by_hand_and_runs_elsewhere_is_its_kubelets(*, deleted: bool) -> None:
    world = World()
    world.simulated.behaviour = Behaviour(boot=timedelta(minutes=1))
    refuse(world, ClusterUnavailableError("timeout"))
    created = world.create_pod()
    world.pump()
    assert len(world.billed()) == 1
    pod = world.pod()
    assert pod is not None
    pod["spec"]["schedulingGates"], pod["spec"]["nodeName"] = [], "worker-1"
    pod["status"]["phase"] = "Running"
    with world.emulator.store.lock:
        world.emulator.store.write(PODS, ("default", "train"), pod)
    if deleted:
        act(world, "DELETE", POD)
    before = world.pod()
    world.run(4)
    claim = world.claims.get(claim_id_for(CLUSTER, created["metadata"]["uid"]))
    assert claim is not None
    assert claim.phase is Phase.TERMINATED
    assert world.billed() == []
    assert world.pod() == before


@pytest.mark.parametrize("again", [True, False])
def test_a_waiting_pod_whose_gate_is_taken_off_by_hand_ends_its_claim_and_says_so(*, again: bool) -> None:
    world = World(pool=pool_object(maxPricePerHour="0.01"))
    host: dict[str, Any] = {} if again else {"hostNetwork": True}
    created = world.create_pod(**host)
    world.pump()
    assert world.claim().phase is Phase.PENDING
    assert (world.claim().next_action_at is not None) is again
    body = '{"spec": {"schedulingGates": null}}'
    assert act(world, "PATCH", POD, body, "application/merge-patch+json") == 200
    world.run(2)
    claim = world.claims.get(claim_id_for(CLUSTER, created["metadata"]["uid"]))
    assert claim is not None
    assert claim.phase is Phase.TERMINATED
    assert shown(world)["reason"] == "GateRemoved"
    assert world.pod() is not None


@pytest.mark.parametrize("node", [None, "nebula-simulated", "worker-1"])
def test_an_opted_in_pod_that_never_had_the_gate_is_told_so_once(node: str | None) -> None:
    world = World()
    host: dict[str, Any] = {"nodeName": node} if node else {}
    world.create_pod(schedulingGates=[], **host)
    world.pump()
    world.run(3)
    told = [e.object for e in world.emulator.store.records(EVENTS) if e.object["reason"] == "NotGated"]
    assert [event["count"] for event in told] == ([] if node == "worker-1" else [1])
    assert world.billed() == []


def test_a_refusal_of_a_pod_that_was_not_read_since_the_create_is_asked_for_again() -> None:
    """An API server answers 422 too where another Pod of that name stands there by now."""
    world = World()
    patch = world.api.patch_pod
    made = refuse(world, InvalidError("PATCH pods: 422 Invalid (metadata.uid)"))
    refused = world.api.patch_pod

    def once(namespace: str, name: str, body: Patch) -> dict[str, Any]:
        return (patch if made else refused)(namespace, name, body)

    world.api.patch_pod = once  # type: ignore[method-assign,assignment]
    world.create_pod()
    world.pump()
    assert (len(made), world.claim().phase) == (1, Phase.RELEASED)
