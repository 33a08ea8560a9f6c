"""Ports: closed by default, opened by the NodePool, narrowed by the Pod, never widened."""

from __future__ import annotations

import pytest
from nebula.domain.nodepool import Ingress, IngressMode
from nebula.domain.workload import PortProtocol, PublishedPort
from nebula.kubernetes.workload import InvalidPodError, published_ports, translate

from tests.support.pods import References, container, node_pool, pod

ANNOTATION = "nebula.inftyai.com/ingress-ports"
DECLARED = [{"name": "web", "containerPort": 8080}, {"name": "metrics", "containerPort": 9000}]


def run(
    mode: str, annotation: str | None = None, ports: list[dict[str, object]] | None = None
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    opened = (PublishedPort(port=8080), PublishedPort(port=7000, protocol=PortProtocol.TCP))
    pool = node_pool(ingress=Ingress(mode=IngressMode(mode), ports=opened if mode == "Ports" else ()))
    found = pod(
        container(ports=DECLARED if ports is None else ports),
        annotations={} if annotation is None else {ANNOTATION: annotation},
    )
    translation = translate(found, pool, References().api)
    assert translation.workload.ports == published_ports(found, pool)
    return tuple(port.port for port in translation.workload.ports), translation.ignored


@pytest.mark.parametrize(
    ("mode", "annotation", "ports"),
    [
        ("None", None, ()),
        ("FirstPort", None, (8080,)),
        ("FirstPort", "none", ()),
        ("FirstPort", "8080", (8080,)),
        ("Ports", None, (8080, 7000)),
        ("Ports", "7000", (7000,)),
        ("Ports", " 7000 , 8080 ", (8080, 7000)),
        ("Ports", "none", ()),
    ],
)
def test_the_ports_are_exactly_the_opened_ones_that_the_pod_keeps(
    mode: str, annotation: str | None, ports: tuple[int, ...]
) -> None:
    assert run(mode, annotation) == (ports, ())


@pytest.mark.parametrize(
    ("mode", "annotation", "ports", "closed"),
    [
        ("None", "8080", (), "8080"),
        ("FirstPort", "9000", (), "9000"),
        ("Ports", "8080,9000,9001", (8080,), "9000, 9001"),
    ],
)
def test_a_port_that_is_not_opened_stays_closed_and_is_named(
    mode: str, annotation: str, ports: tuple[int, ...], closed: str
) -> None:
    published, (word,) = run(mode, annotation)
    assert published == ports
    assert f"ports {closed} of annotation" in word


def test_first_port_without_a_declared_one_says_so() -> None:
    assert run("FirstPort", ports=[]) == ((), ("ingress FirstPort (the container declares no port)",))


def test_g12_repeated_ports_are_one() -> None:
    assert run("FirstPort", ports=[{"containerPort": 80}, {"containerPort": 80, "protocol": "TCP"}])[0] == (80,)


def test_the_protocol_is_the_node_pool_s_and_repetition_is_dropped() -> None:
    http, tcp = PublishedPort(port=7000), PublishedPort(port=7000, protocol=PortProtocol.TCP)
    pool = node_pool(ingress=Ingress(mode=IngressMode.PORTS, ports=(tcp, http, tcp)))
    assert published_ports(pod(), pool) == (tcp, http)


@pytest.mark.parametrize("annotation", ["", "all", "0", "65536", "80,", "-80", "80 90", "80;90", "None", "http"])
def test_an_annotation_that_cannot_be_read_is_refused_whatever_the_pool_says(annotation: str) -> None:
    for mode in ("None", "FirstPort", "Ports"):
        with pytest.raises(InvalidPodError, match="ingress-ports") as raised:
            run(mode, annotation)
        assert raised.value.reason == "InvalidIngressPorts"
