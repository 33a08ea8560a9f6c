"""The stand-ins for scheduler and controllers: they bind, refuse and clean up as upstream's do."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from nebula.clock import ManualClock
from nebula.kubernetes.node import ensure_node, node_object

from local.kubernetes.adapter import client
from local.kubernetes.resources import NAMESPACES, NODES, PODS, SECRETS
from local.kubernetes.server import Emulator

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
PROVIDER = "nebula.inftyai.com/provider"
TOLERATION = {"key": PROVIDER, "operator": "Exists"}
Object = dict[str, Any]


class Cluster:
    def __init__(self) -> None:
        self.emulator = Emulator(clock=ManualClock(NOW))
        self.api = client(self.emulator)

    def node(self, name: str = "n1", *, ready: str = "True", **spec: Any) -> None:
        amounts = {"cpu": "4", "memory": "8Gi", "pods": "10"}
        status = {"allocatable": amounts, "conditions": [{"type": "Ready", "status": ready}]}
        labels = spec.pop("labels", {"zone": "a"})
        self.emulator.create(NODES, "", {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status})

    def pod(self, name: str = "p", *, cpu: str = "1", **spec: Any) -> Object:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        body = {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}
        self.emulator.create(PODS, "default", body)
        return self.read(name)

    def read(self, name: str = "p") -> Object:
        found = self.emulator.read(PODS, "default", name)
        assert found is not None
        return found

    def bound(self, name: str = "p") -> str | None:
        found: str | None = self.read(name)["spec"].get("nodeName")
        return found

    def why(self, name: str = "p") -> str:
        (condition,) = [c for c in self.read(name)["status"]["conditions"] if c["type"] == "PodScheduled"]
        assert condition["status"] == "False"
        return str(condition["message"])

    def finish(self, name: str) -> None:
        self.api.patch_pod_status("default", name, {"status": {"phase": "Succeeded"}})


def test_a_pod_without_gates_is_bound_and_a_gated_one_is_not() -> None:
    cluster = Cluster()
    cluster.node()
    cluster.pod()
    cluster.pod("gated", schedulingGates=[{"name": "g"}])
    assert (cluster.bound(), cluster.bound("gated")) == ("n1", None)
    assert cluster.why("gated").startswith("Scheduling is blocked")
    patch = {"spec": {"schedulingGates": [{"$patch": "delete", "name": "g"}]}}
    cluster.api.patch_pod("default", "gated", patch)
    assert cluster.bound("gated") == "n1"


def test_another_schedulers_pod_is_left_alone() -> None:
    cluster = Cluster()
    cluster.node()
    cluster.pod(schedulerName="other")
    assert cluster.bound() is None


def _affinity(operator: str, *values: str) -> Object:
    terms = [{"matchExpressions": [{"key": "zone", "operator": operator, "values": list(values)}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


@pytest.mark.parametrize(
    ("node", "spec", "why"),
    [
        ({"ready": "False"}, {}, "node(s) were not ready"),
        (
            {"taints": [{"key": "t", "value": "v", "effect": "NoSchedule"}]},
            {"tolerations": [{"key": "t", "value": "other"}]},
            "node(s) had untolerated taint {t: v}",
        ),
        ({}, {"nodeSelector": {"zone": "b"}}, "node(s) didn't match Pod's node affinity/selector"),
        ({}, {"affinity": _affinity("NotIn", "a")}, "node(s) didn't match Pod's node affinity/selector"),
        ({}, {"affinity": _affinity("DoesNotExist")}, "node(s) didn't match Pod's node affinity/selector"),
        ({}, {"cpu": "5"}, "Insufficient cpu"),
    ],
)
def test_a_node_that_does_not_suit_says_why(node: Object, spec: Object, why: str) -> None:
    cluster = Cluster()
    cluster.node(**node)
    cluster.pod(**spec)
    assert cluster.bound() is None
    assert cluster.why() == f"0/1 nodes are available: 1 {why}."


@pytest.mark.parametrize(
    ("node", "spec"),
    [
        ({"taints": [{"key": "t", "value": "v", "effect": "PreferNoSchedule"}]}, {}),
        ({"taints": [{"key": "t", "value": "v", "effect": "NoSchedule"}]}, {"tolerations": [{"operator": "Exists"}]}),
        (
            {"taints": [{"key": "t", "value": "v", "effect": "NoSchedule"}]},
            {"tolerations": [{"key": "t", "value": "v", "effect": "NoSchedule"}]},
        ),
        ({}, {"affinity": _affinity("In", "a", "b")}),
        ({}, {"affinity": _affinity("Exists")}),
        ({"labels": {"zone": "7"}}, {"affinity": _affinity("Gt", "6")}),
        ({"labels": {"zone": "7"}}, {"affinity": _affinity("Lt", "8")}),
    ],
)
def test_a_node_that_suits_takes_the_pod(node: Object, spec: Object) -> None:
    cluster = Cluster()
    cluster.node(**node)
    cluster.pod(**spec)
    assert cluster.bound() == "n1"


def test_room_is_counted_and_freed_by_pods_that_end() -> None:
    cluster = Cluster()
    cluster.node()
    for name in ("a", "b"):
        cluster.pod(name, cpu="2")
    cluster.pod("c")
    assert cluster.why("c") == "0/1 nodes are available: 1 Insufficient cpu."
    cluster.finish("a")
    assert cluster.bound("c") == "n1"


def test_a_pod_waits_for_a_node_and_takes_the_first_that_suits() -> None:
    cluster = Cluster()
    cluster.pod(tolerations=[TOLERATION], nodeSelector={PROVIDER: "runpod"})
    assert cluster.why() == "0/0 nodes are available: no nodes."
    cluster.node()
    assert cluster.why().endswith("1 node(s) didn't match Pod's node affinity/selector.")
    ensure_node(cluster.api, "runpod", NOW)
    assert cluster.bound() == "nebula-runpod"


# Controllers


def test_a_new_node_is_not_ready_until_its_condition_says_so() -> None:
    cluster = Cluster()
    cluster.emulator.create(NODES, "", node_object("runpod", NOW))
    found = cluster.api.get_node("nebula-runpod")
    assert found is not None
    assert [taint["key"] for taint in found["spec"]["taints"]] == [PROVIDER]
    cluster.node("unready", ready="False")
    waiting = cluster.api.get_node("unready")
    assert waiting is not None
    assert [taint["key"] for taint in waiting["spec"]["taints"]] == ["node.kubernetes.io/not-ready"]


def test_a_lapse_marks_the_node_and_its_pods_and_only_a_ready_condition_ends_it() -> None:
    cluster = Cluster()
    ensure_node(cluster.api, "runpod", NOW)
    cluster.pod(tolerations=[TOLERATION])
    cluster.api.patch_pod_status("default", "p", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    cluster.emulator.controllers.lapse("nebula-runpod")
    node = cluster.api.get_node("nebula-runpod")
    assert node is not None
    assert {c["status"] for c in node["status"]["conditions"] if c["type"] != "NetworkUnavailable"} == {"Unknown"}
    effects = [taint["effect"] for taint in node["spec"]["taints"] if taint["key"].endswith("/unreachable")]
    assert sorted(effects) == ["NoExecute", "NoSchedule"]
    assert [c["status"] for c in cluster.read()["status"]["conditions"] if c["type"] == "Ready"] == ["False"]

    ensure_node(cluster.api, "runpod", NOW)
    healed = cluster.api.get_node("nebula-runpod")
    assert healed is not None
    assert [taint["key"] for taint in healed["spec"]["taints"]] == [PROVIDER]
    assert [c["status"] for c in cluster.read()["status"]["conditions"] if c["type"] == "Ready"] == ["False"]


def test_pods_of_a_node_that_went_are_failed_and_deleted_and_no_others() -> None:
    cluster = Cluster()
    cluster.node()
    cluster.node("n2", labels={"zone": "b"})
    cluster.pod("a", nodeSelector={"zone": "a"})
    cluster.pod("b", nodeSelector={"zone": "b"})
    cluster.pod("loose", schedulingGates=[{"name": "g"}])
    cluster.api.delete_node("n1")
    assert cluster.emulator.controllers.collect_garbage() == 1
    assert cluster.emulator.read(PODS, "default", "a") is None
    assert cluster.bound("b") == "n2"
    assert cluster.bound("loose") is None
    assert cluster.emulator.controllers.collect_garbage() == 0


def test_a_namespace_goes_when_what_is_in_it_is_gone() -> None:
    cluster = Cluster()
    cluster.emulator.create(NAMESPACES, "", {"metadata": {"name": "team"}})
    cluster.emulator.create(SECRETS, "team", {"metadata": {"name": "s"}})
    held = {"metadata": {"name": "p", "finalizers": ["x/y"]}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    cluster.emulator.create(PODS, "team", held)
    cluster.emulator.handle("DELETE", "/api/v1/namespaces/team", {}, {})
    assert cluster.emulator.read(SECRETS, "team", "s") is None
    assert cluster.emulator.read(NAMESPACES, "", "team") is not None
    cluster.api.patch_pod("team", "p", {"metadata": {"finalizers": None}})
    assert cluster.emulator.read(PODS, "team", "p") is None
    assert cluster.emulator.read(NAMESPACES, "", "team") is None
