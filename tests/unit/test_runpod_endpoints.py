"""The endpoint of a pod: only through a published port, only an address that callers can reach."""

from __future__ import annotations

import json
from typing import Any

import pytest
from nebula.domain.workload import PortProtocol, PublishedPort
from nebula.providers.runpod.instances import to_instance

from tests.support.runpod import RunPodWorld, request
from tests.support.runpod_guard import Guard

ENV = {"NEBULA_INSTALLATION": "i", "NEBULA_CLAIM": "c", "NEBULA_ATTEMPT": "1"}
HTTP, TCP = PublishedPort(port=8080), PublishedPort(port=9000, protocol=PortProtocol.TCP)


def test_no_endpoint_without_a_published_port() -> None:
    world = RunPodWorld()
    made = world.provider.provision(request())
    world.pass_time(10)
    running = world.provider.get(made.id)
    assert running is not None
    assert (made.endpoint, running.endpoint) == (None, None)


def test_an_http_port_has_its_proxy_url_from_the_start(runpod_guard: Guard) -> None:
    runpod_guard.opened |= {"8080/http", "9000/tcp"}
    world = RunPodWorld()
    made = world.provider.provision(request(ports=(TCP, HTTP)))
    assert made.endpoint == f"https://{made.id}-8080.proxy.runpod.net"
    world.pass_time(10)
    running = world.provider.get(made.id)
    assert running is not None
    assert running.endpoint == made.endpoint


def test_a_tcp_port_has_an_address_once_it_is_mapped(runpod_guard: Guard) -> None:
    runpod_guard.opened.add("9000/tcp")
    world = RunPodWorld()
    made = world.provider.provision(request(ports=(TCP,)))
    endpoints = []
    for _ in range(4):
        instance = world.provider.get(made.id)
        assert instance is not None
        endpoints.append(instance.endpoint)
        world.pass_time(1)
    assert endpoints == [None, None, None, "195.26.233.3:20001"]


def pod(ports: Any, runtime: Any, **more: Any) -> dict[str, Any]:
    return {"id": "abc", "status": "RUNNING", "env": ENV, "ports": ports, "runtime": runtime, **more}


def mapped(kind: Any, ip: Any, private: Any = 9000, public: Any = 31000) -> dict[str, Any]:
    return {"ports": [{"private": private, "public": public, "type": kind, "ip": ip}]}


@pytest.mark.parametrize(
    ("ports", "runtime", "expected"),
    [
        (["9000/tcp"], mapped("tcp", "195.26.233.3"), "195.26.233.3:31000"),
        (["9000/tcp"], mapped("tcp", "2001:4860:4860::8888"), "[2001:4860:4860::8888]:31000"),
        (["9000/tcp"], mapped("tcp", "195.26.233.3", private=9001), None),
        (["9000/tcp"], mapped("http", "195.26.233.3"), None),
        (["9000/tcp"], mapped("tcp", "100.65.0.101"), None),
        (["9000/tcp"], mapped("tcp", "10.0.0.1"), None),
        (["9000/tcp"], mapped("tcp", "host.example"), None),
        (["9000/tcp"], mapped("tcp", None), None),
        (["9000/tcp"], mapped("tcp", "195.26.233.3", public=None), None),
        (["9000/tcp"], mapped("tcp", "195.26.233.3", public=70000), None),
        (["9000/tcp"], mapped("tcp", "195.26.233.3", public=True), None),
        (["9000/tcp"], {}, None),
        (["9000/tcp"], None, None),
        (["9000/tcp"], {"ports": None}, None),
        (["9000/tcp"], {"ports": ["x", 7]}, None),
        ([], mapped("tcp", "195.26.233.3"), None),
        ([], mapped("http", "100.65.0.101", private=8080), None),
        (None, None, None),
        (["8080"], None, None),
        (["x/http", "8080/http"], None, "https://abc-8080.proxy.runpod.net"),
    ],
)
def test_only_public_addresses_of_published_ports_are_shown(ports: Any, runtime: Any, expected: str | None) -> None:
    assert to_instance(pod(ports, runtime)).endpoint == expected


def test_the_inner_address_of_an_http_port_is_never_shown(runpod_guard: Guard) -> None:
    runpod_guard.opened.add("8080/http")
    world = RunPodWorld()
    made = world.provider.provision(request(ports=(HTTP,)))
    world.pass_time(10)
    assert "100.65.0.101" in json.dumps(world.account.pods[made.id].render(world.clock.now()))
    assert "100.65" not in repr(world.provider.get(made.id)) + repr(world.provider.list_instances())


def test_neither_a_foreign_nor_an_ended_pod_has_an_endpoint() -> None:
    assert to_instance(pod(["8080/http"], None, env={})).endpoint is None
    assert to_instance(pod(["8080/http"], None, status="TERMINATED")).endpoint is None
    assert to_instance(pod(["8080/http"], None, status="EXITED")).endpoint is None
