"""Would the scheduler bind the Pod to the virtual Node? Asked before anything is bought."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from nebula.kubernetes.node import node_object, node_problems

from tests.support.pods import NOW, Object, container, pod

NODE = node_object("runpod", NOW)
HOSTNAME = "kubernetes.io/hostname"


def problems(**spec: Any) -> tuple[str, ...]:
    return node_problems(pod(**spec), NODE)


def required(*expressions: Object, fields: list[Object] | None = None) -> Object:
    term: Object = {"matchExpressions": list(expressions), **({"matchFields": fields} if fields else {})}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def expression(key: str, operator: str, *values: str) -> Object:
    return {"key": key, "operator": operator, "values": list(values)}


def test_a_plain_pod_fits() -> None:
    assert problems() == ()


@pytest.mark.parametrize("selector", [{HOSTNAME: "nebula-runpod"}, {"nebula.inftyai.com/provider": "runpod"}])
def test_a_selector_that_the_node_meets_is_no_problem(selector: Object) -> None:
    assert problems(nodeSelector=selector) == ()


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        ({"kubernetes.io/os": "linux"}, "no os or arch label"),
        ({"kubernetes.io/arch": "amd64"}, "no os or arch label"),
        ({"disk": "ssd"}, "disk=ssd is not a label"),
        ({"nebula.inftyai.com/provider": "modal"}, "nebula.inftyai.com/provider=modal"),
    ],
)
def test_y9_a_selector_that_forbids_the_node_is_named(selector: Object, words: str) -> None:
    (problem,) = problems(nodeSelector=selector)
    assert words in problem


@pytest.mark.parametrize(
    "expressions",
    [
        [expression("type", "In", "virtual-kubelet", "other")],
        [expression("zone", "NotIn", "a")],
        [expression("zone", "DoesNotExist")],
        [expression("nebula.inftyai.com/provider", "Exists")],
    ],
)
def test_required_node_affinity_that_is_met(expressions: list[Object]) -> None:
    assert problems(affinity=required(*expressions)) == ()


@pytest.mark.parametrize(
    "expressions",
    [
        [expression("type", "NotIn", "virtual-kubelet")],
        [expression("topology.kubernetes.io/zone", "In", "a")],
        [expression("nebula.inftyai.com/provider", "DoesNotExist")],
        [expression("cores", "Gt", "8")],
        [expression("type", "Lt", "8")],
        [expression("type", "Near", "8")],
        [],
    ],
)
def test_required_node_affinity_that_is_not(expressions: list[Object]) -> None:
    (problem,) = problems(affinity=required(*expressions))
    assert problem.startswith("spec.affinity.nodeAffinity")


def test_affinity_terms_are_alternatives_and_fields_name_the_node() -> None:
    name = expression("metadata.name", "In", "nebula-runpod")
    assert problems(affinity=required(fields=[name])) == ()
    terms = [{"matchExpressions": [expression("zone", "Exists")]}, {"matchFields": [name]}]
    nested = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    assert problems(affinity={"nodeAffinity": nested}) == ()


@pytest.mark.parametrize(
    ("operator", "value", "fits"), [("Gt", "4", True), ("Gt", "8", False), ("Lt", "9", True), ("Lt", "8", False)]
)
def test_numbers_are_compared(operator: str, value: str, fits: bool) -> None:
    node = copy.deepcopy(NODE)
    node["metadata"]["labels"]["cores"] = "8"
    found = node_problems(pod(affinity=required(expression("cores", operator, value))), node)
    assert (found == ()) is fits


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
def test_required_pod_affinity_is_a_problem_preferred_is_not(kind: str) -> None:
    terms = [{"topologyKey": HOSTNAME}]
    (problem,) = problems(affinity={kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}})
    assert f"spec.affinity.{kind}" in problem
    assert problems(affinity={kind: {"preferredDuringSchedulingIgnoredDuringExecution": terms}}) == ()


@pytest.mark.parametrize(
    ("constraint", "fits"),
    [
        ({"topologyKey": HOSTNAME, "whenUnsatisfiable": "DoNotSchedule"}, True),
        ({"topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}, True),
        ({"topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}, False),
        ({"topologyKey": HOSTNAME, "nodeAffinityPolicy": "Ignore"}, False),
        ({"topologyKey": HOSTNAME, "minDomains": 2}, False),
    ],
)
def test_topology_spread(constraint: Object, fits: bool) -> None:
    assert (problems(topologySpreadConstraints=[constraint]) == ()) is fits


def tainted(**spec: Any) -> Object:
    node = copy.deepcopy(NODE)
    node["spec"] |= spec
    return node


@pytest.mark.parametrize("key", ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"])
@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_the_taints_of_a_node_in_trouble_are_tolerated(key: str, effect: str) -> None:
    assert node_problems(pod(), tainted(taints=[{"key": key, "effect": effect}])) == ()


def test_a_node_without_a_route_in_the_cluster_s_network_takes_pods_that_have_no_network() -> None:
    """What a cloud's route controller makes of a Node without a machine (kubernetes/cloud-provider, ``route``)."""
    taint = {"key": "node.kubernetes.io/network-unavailable", "effect": "NoSchedule"}
    assert node_problems(pod(), tainted(taints=[taint])) == ()


def test_a_cordoned_node_takes_only_pods_that_say_so() -> None:
    cordoned = tainted(unschedulable=True)
    (problem,) = node_problems(pod(), cordoned)
    assert "node.kubernetes.io/unschedulable:NoSchedule" in problem
    assert node_problems(pod(tolerations=[{"operator": "Exists"}]), cordoned) == ()


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        ({"key": "team", "operator": "Equal", "value": "ml"}, True),
        ({"key": "team", "value": "ml", "effect": "NoSchedule"}, True),
        ({"key": "team", "value": "ml", "effect": "NoExecute"}, False),
        ({"key": "team", "value": "web"}, False),
        ({"key": "team", "operator": "Exists"}, True),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_a_taint_of_the_operator_s_own(toleration: Object, fits: bool) -> None:
    node = tainted(
        taints=[{"key": "team", "value": "ml", "effect": "NoSchedule"}, {"key": "x", "effect": "PreferNoSchedule"}]
    )
    assert (node_problems(pod(tolerations=[toleration]), node) == ()) is fits


def test_resources_that_the_node_does_not_list_are_named() -> None:
    main = container(resources={"requests": {"cpu": "1", "hugepages-2Mi": "4Mi"}, "limits": {"amd.com/gpu": "1"}})
    assert [p.split(" ")[1] for p in node_problems(pod(main), NODE)] == ["amd.com/gpu", "hugepages-2Mi"]


def test_a_request_beyond_the_whole_node_is_named_and_one_at_its_edge_fits() -> None:
    whole = NODE["status"]["allocatable"]["cpu"]
    assert node_problems(pod(container(resources={"requests": {"cpu": whole}})), NODE) == ()
    (problem,) = node_problems(pod(container(resources={"limits": {"cpu": "1E"}})), NODE)
    assert problem == f"resource cpu is more than the Node's {whole}"
