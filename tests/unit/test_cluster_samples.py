"""The samples that a cluster's user starts from: each is applied, and each workload runs as written."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from nebula.clock import ManualClock
from nebula.kubernetes.node_pool import node_pool_from_object
from nebula.kubernetes.pod import Pod
from nebula.kubernetes.workload import published_ports, refusals, shape_of
from nebula.providers.factory import BUILDERS
from nebula.providers.simulated import SimulatedProvider
from nebula.providers.simulated.catalog import default_offerings

from local.kubernetes.resources import NODE_POOLS, PODS, SECRETS
from tests.support.world import START, World, running

SAMPLES = Path(__file__).resolve().parents[2] / "cluster" / "samples"
Object = dict[str, Any]


def documents(kind: str | None = None) -> list[tuple[str, Object]]:
    """(file name, object) of every sample, or of those of one kind."""
    found = [
        (path.name, read) for path in sorted(SAMPLES.glob("*.yaml")) for read in yaml.safe_load_all(path.read_text())
    ]
    return [(name, read) for name, read in found if kind is None or read["kind"] == kind]


POOLS = {read["metadata"]["name"]: read for _, read in documents("NodePool")}
WORKLOADS = [(name, read) for name, read in documents() if read["kind"] not in ("NodePool", "Secret")]


def pod_of(workload: Object) -> Object:
    """The Pod that a controller makes from a workload's template."""
    if workload["kind"] == "Pod":
        return copy.deepcopy(workload)
    template = copy.deepcopy(workload["spec"]["template"])
    metadata = {**template["metadata"], "name": f"{workload['metadata']['name']}-0"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def simulated(pool: Object) -> Object:
    """The NodePool with the simulated provider in the place of the real ones."""
    found = copy.deepcopy(pool)
    found["spec"]["providers"] = [{"name": "simulated"}]
    return found


def selling(*accelerators: str) -> World:
    """An installation whose provider sells what it always does, and these accelerators too."""
    usual = default_offerings()
    like = [row for row in usual if row.accelerator == "A100"]
    more = [row.model_copy(update={"accelerator": name}) for row in like for name in accelerators]
    clock = ManualClock(START)
    return World(SimulatedProvider(clock, offerings=(*usual, *more)), clock=clock)


def test_there_is_a_sample_of_each_kind() -> None:
    assert sorted(POOLS) == ["budget", "public", "runpod", "spot"]
    assert sorted(read["kind"] for _, read in WORKLOADS) == ["Deployment", "Job", "Pod", "Pod", "StatefulSet"]


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
def test_each_node_pool_is_read_and_applied(pool: Object) -> None:
    read = node_pool_from_object(pool)
    world = World()
    world.emulator.create(NODE_POOLS, "", pool)
    assert read.name == pool["metadata"]["name"]
    assert world.api.get_node_pool(read.name) is not None


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
def test_no_sample_names_a_provider_that_this_release_lacks(pool: Object) -> None:
    assert {provider["name"] for provider in pool["spec"]["providers"]} <= set(BUILDERS)


@pytest.mark.parametrize("workload", [read for _, read in WORKLOADS], ids=[name for name, _ in WORKLOADS])
def test_each_workload_is_understood_whole_and_names_a_sample_pool(workload: Object) -> None:
    template = pod_of(workload)
    template["metadata"]["uid"] = "uid-1"
    pod = Pod.from_object(template)
    assert pod.enabled
    assert pod.gated
    assert refusals(pod) == ()
    assert pod.node_pool in POOLS
    assert shape_of(pod).accelerator_count == int(
        pod.containers[0]["resources"].get("limits", {}).get("nvidia.com/gpu", "0")
    )


@pytest.mark.parametrize("workload", [read for _, read in WORKLOADS], ids=[name for name, _ in WORKLOADS])
def test_each_workload_runs(workload: Object) -> None:
    world = selling("A100-80GB", "RTX4090")
    template = pod_of(workload)
    for _, secret in documents("Secret"):
        world.emulator.create(SECRETS, "default", secret)
    pool = POOLS[template["metadata"]["labels"]["nebula.inftyai.com/nodepool"]]
    world.emulator.create(NODE_POOLS, "", simulated(pool))
    world.emulator.create(PODS, "default", template)
    world.run(2)
    assert running(world.emulator.read(PODS, "default", template["metadata"]["name"]))


def test_only_the_pool_that_says_so_publishes_a_port() -> None:
    deployment = next(read for _, read in documents("Deployment"))
    template = pod_of(deployment)
    template["metadata"]["uid"] = "uid-1"
    pod = Pod.from_object(template)
    open_ = {name: published_ports(pod, node_pool_from_object(pool)) for name, pool in POOLS.items()}
    assert {name for name, ports in open_.items() if ports} == {"public"}
    assert [port.port for port in open_["public"]] == [8000]
