"""Requests against RunPod's own OpenAPI document.

``tests/support/runpod_guard.py`` judges every request that the client sends anywhere in the suite; here is
one whole life, and proof that the judge judges.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from nebula.domain.candidate import Shape
from nebula.domain.workload import PortProtocol, PublishedPort
from nebula.providers.runpod import newer
from pydantic import SecretStr

from local.runpod.state import Recorded
from tests.support.runpod import CPU_ONLY, SXM, RunPodWorld, mark, request
from tests.support.runpod_contract import ABSENT, document, violations
from tests.support.runpod_guard import Guard

pytestmark = pytest.mark.skipif(not document(), reason=ABSENT)
POD: dict[str, Any] = {"name": "n", "image": "i", "gpu": {"id": SXM}, "disk": 10}


def call(method: str, path: str, content: Any = None, **query: str) -> Recorded:
    return Recorded(method, path, query, b"" if content is None else json.dumps(content).encode(), 200)


def live(world: RunPodWorld) -> None:
    """Use every route that the client has."""
    provider = world.provider
    provider.offerings()
    lent = provider.ensure_registry_credential("nebula-x-1", SecretStr("user"), SecretStr("word"))
    shape = Shape(accelerator="H100", accelerator_count=2, cpu=Decimal(8), memory_gib=Decimal(64), disk_gb=100)
    full = provider.provision(
        request(
            shape=shape,
            registry=lent,
            env={"A": "b"},
            command=("run",),
            args=("--fast",),
            ports=(PublishedPort(port=8080), PublishedPort(port=22, protocol=PortProtocol.TCP)),
            place={"regions": ("EU-RO-1",)},
        )
    )
    cpu = provider.provision(request(of=mark(2), shape=CPU_ONLY, types=("cpu3c",)))
    world.account.pages.at_most = 1
    provider.list_instances()
    assert provider.find(mark(2)) is not None
    assert provider.get(full.id) is not None
    list(provider.logs(full.id))
    for instance in (full, cpu):
        provider.terminate(instance.id)
    provider.list_registry_credentials()
    provider.delete_registry_credential(lent)


def test_every_route_of_the_client_is_in_the_document(runpod_guard: Guard) -> None:
    runpod_guard.opened |= {"8080/http", "22/tcp"}
    world = RunPodWorld()
    live(world)
    assert runpod_guard.calls == len(world.account.requests) >= 16
    assert {status for one in world.account.requests if (status := one.status) >= 300} == set()


def test_what_is_newer_than_the_document_is_sent_and_is_in_fact_newer(runpod_guard: Guard) -> None:
    runpod_guard.opened |= {"8080/http", "22/tcp"}
    world = RunPodWorld()
    live(world)
    pods = world.calls("POST", "/v2/pods")
    assert set(pods[0]) >= newer.POD_FIELDS
    assert set(pods[0]["gpu"]) >= newer.GPU_FIELDS
    assert {name for one in world.account.requests for name in one.query} >= newer.LIST_PARAMETERS
    text = json.dumps(document()["components"]["schemas"]["CreatePodRequest"])
    assert not [name for name in newer.POD_FIELDS if f'"{name}": {{' in text]
    gpu = json.dumps(document()["components"]["schemas"]["CreateGpuConfig"])
    assert not [name for name in newer.GPU_FIELDS if name in gpu]


@pytest.mark.parametrize(
    "bad",
    [
        call("POST", "/v2/pods", POD | {"imageName": "x"}),
        call("POST", "/v2/pods", POD | {"disk": 0}),
        call("POST", "/v2/pods", POD | {"disk": "10"}),
        call("POST", "/v2/pods", POD | {"ports": "8080/http"}),
        call("POST", "/v2/pods", POD | {"env": {"A": 1}}),
        call("POST", "/v2/pods", POD | {"cloud": "ALL"}),
        call("POST", "/v2/pods", POD | {"gpu": {"id": SXM, "ids": []}}),
        call("POST", "/v2/pods", POD | {"gpu": {"count": 1}}),
        call("POST", "/v2/pods", {"name": "n", "gpu": {"id": SXM}}),
        call("POST", "/v2/registries", {"name": "n", "username": "u", "password": "p", "host": "h"}),
        call("POST", "/v2/registries", {"name": "n", "username": "", "password": "p"}),
        call("GET", "/v2/pods", status="RUNNING"),
        call("GET", "/v2/catalog/gpus", include="AVAILABILITY", product="CAR"),
        call("GET", "/v2/catalog/gpus", limit="5"),
        call("GET", "/v2/pods/a", {"x": 1}),
        call("GET", "/v1/pods"),
        call("PUT", "/v2/pods/a"),
        call("DELETE", "/v2/pods"),
    ],
)
def test_the_judge_finds_what_is_wrong(bad: Recorded) -> None:
    assert violations(bad)


@pytest.mark.parametrize(
    "good",
    [
        call("POST", "/v2/pods", POD | {"entrypoint": ["x"], "cmd": []}),
        call("POST", "/v2/pods", POD | {"gpu": {"id": SXM, "count": 2, "minRamPerGpu": 5, "minVcpuCountPerGpu": 2}}),
        call("GET", "/v2/pods", limit="100", cursor="x"),
        call("GET", "/v2/catalog/gpus", include="AVAILABILITY", product="POD", cloud="SECURE"),
        call("DELETE", "/v2/pods/a%20b"),
    ],
)
def test_the_judge_lets_pass_what_is_right(good: Recorded) -> None:
    assert violations(good) == []
