"""What a Pod asks for: every odd accelerator request is decided, none becomes CPU-only by accident."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from nebula.domain.candidate import Shape
from nebula.kubernetes.pod import Pod
from nebula.kubernetes.workload import InvalidPodError, refusals, shape_of

from tests.support.pods import container, pod

GPU = "nvidia.com/gpu"
TYPE = "nebula.inftyai.com/accelerator-type"


def asking(*, type_: str | None = "h100", name: str = "main", **resources: Any) -> Pod:
    labels = {} if type_ is None else {TYPE: type_}
    return pod(container(name=name, resources=resources), labels=labels)


def reason(found: Pod) -> str:
    with pytest.raises(InvalidPodError) as raised:
        shape_of(found)
    return raised.value.reason


@pytest.mark.parametrize("type_", ["h100", "H100", " h100 "])
def test_the_type_is_read_in_any_case(type_: str) -> None:
    assert shape_of(asking(type_=type_, limits={GPU: "2"})) == Shape(accelerator="H100", accelerator_count=2)


@pytest.mark.parametrize(
    "resources",
    [
        {"limits": {GPU: "4"}},
        {"limits": {GPU: 4}, "requests": {GPU: "4"}},
        {"limits": {GPU: "4e0"}},
    ],
)
def test_the_count_comes_from_limits(resources: dict[str, Any]) -> None:
    assert shape_of(asking(**resources)).accelerator_count == 4


def test_a_type_without_a_count_means_one() -> None:
    assert shape_of(asking()) == Shape(accelerator="H100", accelerator_count=1)


@pytest.mark.parametrize("type_", [None, "", "  "])
def test_i4_a_count_without_a_type_is_refused_never_cpu_only(type_: str | None) -> None:
    assert reason(asking(type_=type_, limits={GPU: "1"})) == "AcceleratorTypeMissing"


@pytest.mark.parametrize("resources", [{}, {"limits": {GPU: "0"}}])
def test_neither_type_nor_count_is_cpu_only(resources: dict[str, Any]) -> None:
    assert shape_of(asking(type_=None, **resources)) == Shape()


@pytest.mark.parametrize(
    ("resources", "why"),
    [
        ({"limits": {GPU: "0"}}, "AcceleratorCountZero"),
        ({"limits": {GPU: "500m"}}, "AcceleratorCountFractional"),
        ({"limits": {GPU: "1.5"}}, "AcceleratorCountFractional"),
        ({"limits": {GPU: "-1"}}, "InvalidQuantity"),
        ({"limits": {GPU: "one"}}, "InvalidQuantity"),
        ({"limits": {GPU: "2"}, "requests": {GPU: "1"}}, "AcceleratorCountsDiffer"),
        ({"requests": {GPU: "4"}}, "AcceleratorLimitMissing"),
    ],
)
def test_y1_a_count_that_nobody_can_serve_is_refused(resources: dict[str, Any], why: str) -> None:
    assert reason(asking(**resources)) == why


@pytest.mark.parametrize("amount", ["-1", "one"])
def test_an_amount_that_is_none_is_named_with_its_resource(amount: str) -> None:
    with pytest.raises(InvalidPodError, match=r"^container main: nvidia.com/gpu(:| is) "):
        shape_of(asking(limits={GPU: amount}))


@pytest.mark.parametrize(
    "resource", ["amd.com/gpu", "nvidia.com/mig-1g.10gb", "nvidia.com/gpu.shared", "hugepages-2Mi", "google.com/tpu"]
)
@pytest.mark.parametrize("section", ["limits", "requests"])
def test_y1_other_devices_are_refused_by_name(resource: str, section: str) -> None:
    found = pod(container(resources={section: {resource: "1"}}), labels={TYPE: "h100"})
    assert reason(found) == "UnsupportedResource"
    with pytest.raises(InvalidPodError, match=resource):
        shape_of(found)


@pytest.mark.parametrize("type_", ["H 100", "h100/8", "-h100", "ü"])
def test_a_type_that_is_no_name_is_refused(type_: str) -> None:
    assert reason(asking(type_=type_, limits={GPU: "1"})) == "InvalidAcceleratorType"


def two(first: dict[str, Any], second: dict[str, Any]) -> Pod:
    return pod(
        container(name="one", resources={"limits": first}),
        container(name="two", resources={"limits": second}),
        labels={TYPE: "h100"},
    )


def test_y2_differing_counts_over_containers_are_refused_equal_and_absent_ones_are_not() -> None:
    assert reason(two({GPU: "1"}, {GPU: "2"})) == "AcceleratorCountsDiffer"
    assert shape_of(two({GPU: "2"}, {GPU: "2"})).accelerator_count == 2
    assert shape_of(two({}, {GPU: "2"})).accelerator_count == 2


def test_y2_a_pod_of_several_containers_is_refused_whatever_its_shape() -> None:
    assert refusals(two({}, {GPU: "2"}))[0] == "spec.containers (one container per Pod, found: one, two)"


@pytest.mark.parametrize(
    ("resources", "cpu", "memory", "disk"),
    [
        ({"requests": {"cpu": "250m", "memory": "1536Mi"}}, "0.25", "1.5", None),
        ({"limits": {"cpu": "4", "memory": "2Gi"}}, "4", "2", None),
        ({"requests": {"cpu": "1"}, "limits": {"cpu": "8", "memory": "1Gi"}}, "1", "1", None),
        ({"requests": {"cpu": "1u", "memory": "1"}}, "0.001", "0.000001", None),
        ({"requests": {"memory": "1G"}}, "0", "0.931323", None),
        ({"requests": {"ephemeral-storage": "40Gi"}}, "0", "0", 43),
        ({"limits": {"ephemeral-storage": "50G"}}, "0", "0", 50),
        ({"requests": {"ephemeral-storage": "1"}}, "0", "0", 1),
        ({"requests": {"ephemeral-storage": "0"}}, "0", "0", None),
    ],
)
def test_y3_floors_are_requests_else_limits_rounded_up(
    resources: dict[str, Any], cpu: str, memory: str, disk: int | None
) -> None:
    shape = shape_of(asking(type_=None, **resources))
    assert (shape.cpu, shape.memory_gib, shape.disk_gb) == (Decimal(cpu), Decimal(memory), disk)


def test_containers_add_up() -> None:
    shape = shape_of(two({"cpu": "1", "memory": "1Gi"}, {"cpu": "500m", "memory": "512Mi"}))
    assert (shape.cpu, shape.memory_gib) == (Decimal("1.5"), Decimal("1.5"))


@pytest.mark.parametrize("value", [True, [], {}, "-4", "4GB"])
def test_a_quantity_that_is_none_is_refused_with_the_container_named(value: object) -> None:
    with pytest.raises(InvalidPodError, match="container main"):
        shape_of(asking(type_=None, requests={"cpu": value}))
