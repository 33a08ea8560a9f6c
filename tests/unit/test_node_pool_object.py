"""NodePools as the API server keeps them, and Go's durations."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from nebula.domain.candidate import CapacityType
from nebula.domain.nodepool import IngressAuthentication, IngressMode, NodePool, Strategy
from nebula.domain.workload import EgressMode, PortProtocol, PublishedPort
from nebula.kubernetes.node_pool import InvalidNodePoolError, node_pool_from_object, parse_duration


def pool(**spec: Any) -> NodePool:
    return node_pool_from_object(
        {"metadata": {"name": "demo", "resourceVersion": "5"}, "spec": {"providers": [{"name": "runpod"}], **spec}}
    )


def test_a_node_pool_of_the_operator_is_read_unchanged() -> None:
    read = node_pool_from_object(
        {
            "apiVersion": "nebula.inftyai.com/v1alpha1",
            "kind": "NodePool",
            "metadata": {"name": "gpu"},
            "spec": {
                "providers": [{"name": "runpod", "weight": 3}, {"name": "modal", "regions": ["us", "eu-west"]}],
                "capacityTypes": ["Spot", "OnDemand"],
                "strategy": "Ordered",
                "failover": {"blocklistTTL": "10m"},
                "egress": {"mode": "Allowlist", "targets": ["10.0.0.0/8", "*.huggingface.co"]},
            },
            "status": {"placed": {"runpod": 1}},
        }
    )
    assert [p.name for p in read.providers] == ["runpod", "modal"]
    assert (read.providers[0].weight, read.providers[1].regions) == (3, ("us", "eu-west"))
    assert read.capacity_types == (CapacityType.SPOT, CapacityType.ON_DEMAND)
    assert read.failover.blocklist_ttl == timedelta(minutes=10)
    assert (read.egress.mode, read.egress.targets) == (EgressMode.ALLOWLIST, ("10.0.0.0/8", "*.huggingface.co"))


def test_what_is_left_out_has_the_operator_s_defaults() -> None:
    read = pool(failover={}, ingress=None)
    assert (read.name, read.resource_version, read.strategy) == ("demo", "5", Strategy.ORDERED)
    assert read.capacity_types == (CapacityType.ON_DEMAND, CapacityType.SPOT)
    assert read.failover.blocklist_ttl == timedelta(seconds=30)
    assert read.ingress.mode is IngressMode.NONE


def test_the_additions_are_read() -> None:
    read = pool(
        providers=[{"name": "runpod", "parameters": {"cloud": "SECURE"}}],
        strategy="LowestPrice",
        maxPricePerHour="2.50",
        budgetPerHour=12.5,
        allowLargerShapes=True,
        allowUnknownExit=True,
        failover={"reserveDeadline": "1m", "releaseDeadline": "2m", "startDeadline": "1h"},
        ingress={
            "mode": "Ports",
            "ports": [{"port": 8080}, {"port": 22, "protocol": "TCP"}],
            "authentication": "Application",
        },
    )
    assert (read.max_price_per_hour, read.budget_per_hour) == (Decimal("2.5"), Decimal("12.5"))
    assert (read.allow_larger_shapes, read.allow_unknown_exit) == (True, True)
    assert read.failover.start_deadline == timedelta(hours=1)
    assert read.ingress.ports == (PublishedPort(port=8080), PublishedPort(port=22, protocol=PortProtocol.TCP))
    assert read.ingress.authentication is IngressAuthentication.APPLICATION
    assert read.providers[0].parameters == {"cloud": "SECURE"}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"providers": []}, "spec.providers"),
        ({"providers": [{"name": f"p{i}"} for i in range(9)]}, "spec.providers"),
        ({"providers": [{"weight": 1}]}, "spec.providers[0].name"),
        ({"providers": [{"name": "runpod", "weight": 0}]}, "spec.providers[0].weight"),
        ({"strategy": "Cheapest"}, "spec.strategy"),
        ({"capacityTypes": ["Reserved"]}, "spec.capacityTypes[0]"),
        ({"failover": {"blocklistTTL": "ten minutes"}}, "spec.failover.blocklistTTL"),
        ({"failover": {"startDeadline": 30}}, "spec.failover.startDeadline"),
        ({"maxPricePerHour": "cheap"}, "spec.maxPricePerHour"),
        ({"budgetPerHour": "0"}, "spec.budgetPerHour"),
        ({"ingress": {"mode": "Open"}}, "spec.ingress.mode"),
        ({"ingress": {"ports": [{"port": 70000}]}}, "spec.ingress.ports[0].port"),
        ({"allowEverything": True}, "spec.allowEverything"),
    ],
)
def test_a_bad_spec_is_refused_with_its_json_path(spec: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidNodePoolError) as raised:
        pool(**spec)
    assert raised.value.field == field
    assert str(raised.value).startswith(f"{field}: ")


@pytest.mark.parametrize(
    "value", [{}, {"metadata": {}}, {"metadata": {"name": "x"}}, {"metadata": {"name": "x"}, "spec": []}]
)
def test_what_is_no_node_pool_is_refused(value: dict[str, Any]) -> None:
    with pytest.raises(InvalidNodePoolError):
        node_pool_from_object(value)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("5m", 300),
        ("1h30m", 5400),
        ("0", 0),
        ("0s", 0),
        ("1.5h", 5400),
        ("90s", 90),
        ("100ms", 0.1),
        ("1m0.5s", 60.5),
        ("+1s", 1),
        ("2us", 0.000002),
        ("1µs", 0.000001),
        ("999ns", 0),
    ],
)
def test_go_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["", "30", "s", "-30s", "1d", "5 m", "1h 30m", "PT5M", "+", "9000h", "1e3s", None, 30, "9" * 100 + "s"]
)
def test_what_is_no_duration(text: object) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)
