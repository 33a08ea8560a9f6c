"""The real client against the simulator over sockets: every row of the error table, and the transport's ways."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import requests
from nebula.clock import SystemClock
from nebula.http import HttpClient, Limits, new_session
from nebula.observability import MemoryTelemetry
from nebula.providers.errors import NoCapacityError, ProviderError, ProviderUnavailableError
from nebula.providers.runpod import RunPodProvider, build
from pydantic import SecretStr

from local.runpod import Simulator
from local.runpod.http_server import RunPodServer
from tests.support.runpod import KEY, NVL, PCIE, SXM, mark, request
from tests.support.runpod_table import CREATE

pytestmark = pytest.mark.network


class Served:
    """A simulator over HTTP and a provider that knows only its address."""

    def __init__(self, server: RunPodServer) -> None:
        self.server = server
        self.provider = self.connect()

    def connect(self, **limits: Any) -> RunPodProvider:
        http = HttpClient(new_session(), limits=Limits(**{"backoff": 0.01, **limits}))
        return build(
            api_key=SecretStr(KEY),
            base_url=self.server.url,
            clock=SystemClock(),
            telemetry=MemoryTelemetry(),
            http=http,
        )

    def control(self, method: str, name: str, content: Any = None) -> Any:
        url = f"{self.server.url}/_control/{name}"
        answer = requests.request(method, url, data=None if content is None else json.dumps(content), timeout=5)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def alive(self) -> int:
        return int(self.control("GET", "state")["alive"])


@pytest.fixture(scope="module")
def server() -> Iterator[RunPodServer]:
    simulator = Simulator()
    simulator.account.keys = frozenset({KEY})
    with RunPodServer(simulator) as running:
        Thread(target=running.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield running
        running.shutdown()


@pytest.fixture
def served(server: RunPodServer) -> Served:
    server.simulator.account.__init__(server.simulator.account.now)  # type: ignore[misc]
    server.simulator.account.keys = frozenset({KEY})
    return Served(server)


@pytest.mark.parametrize(("status", "detail", "expected"), CREATE)
def test_every_row_of_the_table(served: Served, status: int, detail: str, expected: type[ProviderError]) -> None:
    served.control("POST", "failures", {"method": "POST", "path": "/v2/pods", "status": status, "detail": detail})
    with pytest.raises(ProviderError) as caught:
        served.provider.provision(request())
    assert type(caught.value) is expected
    assert served.alive() == 0


def test_a_life(served: Served) -> None:
    served.control("PUT", "stock", {"type": PCIE, "count": 0, "advertised": "HIGH"})
    made = served.provider.provision(request(types=(PCIE, NVL)))
    assert made.instance_type == NVL
    assert served.provider.find(mark()) is not None
    assert [one.id for one in served.provider.list_instances().instances] == [made.id]
    assert served.provider.offerings().source == "live"
    credential = served.provider.ensure_registry_credential("nebula-x-1", SecretStr("user"), SecretStr("word"))
    served.provider.delete_registry_credential(credential)
    served.control("PUT", "pods", {"id": made.id, "lines": ["hello"]})
    assert list(served.provider.logs(made.id, tail=1)) == ["hello"]
    served.provider.terminate(made.id)
    assert served.provider.get(made.id) is None
    assert served.alive() == 0


def test_a_wrong_key_is_told(served: Served) -> None:
    served.control("PUT", "keys", {"keys": ["another"]})
    with pytest.raises(ProviderError, match="invalid bearer token"):
        served.provider.list_instances()


def test_a_connection_cut_after_the_create_leaves_one_pod_to_be_found(served: Served) -> None:
    served.control("POST", "failures", {"method": "POST", "drop": True, "after": True})
    with pytest.raises(ProviderUnavailableError):
        served.provider.provision(request())
    assert served.provider.find(mark()) is not None
    assert served.alive() == 1


def test_an_answer_that_comes_too_late_is_unknown(served: Served) -> None:
    hasty = served.connect(read=0.2, total=0.3, tries=1)
    served.control("PUT", "latency", {"seconds": 0.6})
    with pytest.raises(ProviderUnavailableError, match=r"Timeout|took too long"):
        hasty.list_instances()


def test_an_answer_over_the_bound_is_refused(served: Served) -> None:
    served.control("POST", "failures", {"path": "/v2/pods/x", "status": 200, "raw": " " * 100_000})
    with pytest.raises(ProviderUnavailableError, match="more than 50000 bytes"):
        served.connect(max_bytes=50_000).get("x")


def test_nobody_there_is_unknown() -> None:
    provider = build(
        api_key=SecretStr(KEY),
        base_url="http://127.0.0.1:9",
        clock=SystemClock(),
        telemetry=MemoryTelemetry(),
        http=HttpClient(new_session(), limits=Limits(connect=1, backoff=0.01)),
    )
    for call in (provider.list_instances, lambda: provider.get("x"), lambda: provider.provision(request())):
        with pytest.raises(ProviderUnavailableError):
            call()
    assert provider.offerings().source == "catalog"


def test_many_at_once_share_a_provider(served: Served) -> None:
    served.control("PUT", "stock", {"type": SXM, "count": 0})
    served.control("PUT", "stock", {"type": SXM, "count": 10, "dataCenter": "EU-RO-1"})

    def one(number: int) -> bool:
        try:
            served.provider.provision(request(of=mark(number)))
        except NoCapacityError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(one, range(24))) == 10
    assert served.alive() == 10


def test_the_command_serves() -> None:
    command = [sys.executable, "-m", "local.runpod", "--port", "0", "--key", KEY]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        base = line.split(" on ")[1].split("/v2")[0]
        provider = build(
            api_key=SecretStr(KEY), base_url=f"{base}/v2", clock=SystemClock(), telemetry=MemoryTelemetry()
        )
        made = provider.provision(request())
        assert provider.find(mark()) is not None
        provider.terminate(made.id)
        process.terminate()
