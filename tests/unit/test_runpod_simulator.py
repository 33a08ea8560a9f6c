"""The simulator itself: as strict as the API, steered over its control routes."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from nebula.clock import ManualClock

from local.runpod import DroppedError, Response, Simulator
from tests.support.runpod import NO_CAPACITY, NVL, START, SXM
from tests.support.runpod_contract import ABSENT, _errors, document

AUTH = {"authorization": "Bearer k"}
POD = {"name": "n", "image": "i", "gpu": {"id": SXM}, "disk": 10}
CPU = {"name": "n", "image": "i", "cpu": {"id": "cpu3c", "vcpuCount": 2}, "disk": 10}


class Api:
    """A simulator and its clock."""

    def __init__(self) -> None:
        self.clock = ManualClock(START)
        self.simulator = Simulator(self.clock.now)

    def call(self, method: str, path: str, content: Any = None, **query: str) -> Response:
        body = b"" if content is None else json.dumps(content).encode()
        return self.simulator.handle(method, path, query, AUTH, body)

    def read(self, method: str, path: str, content: Any = None, **query: str) -> Any:
        return json.loads(self.call(method, path, content, **query).body)

    def control(self, method: str, name: str, content: Any = None) -> Any:
        answer = self.simulator.control(method, name, b"" if content is None else json.dumps(content).encode())
        assert answer.status < 300, answer.body
        return json.loads(answer.body) if answer.body else None

    def make(self, **more: Any) -> str:
        answer = self.call("POST", "/v2/pods", POD | more)
        assert answer.status == 201, answer.body
        return str(json.loads(answer.body)["id"])


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        (POD | {"imageName": "x"}, 422, "additional properties 'imageName' not allowed"),
        (POD | {"ports": None}, 422, "$.ports"),
        (POD | {"ports": ["8080"]}, 422, "8080/http"),
        (POD | {"ports": ["53/udp"]}, 422, "8080/http"),
        (POD | {"env": {"A": 1}}, 422, "$.env"),
        (POD | {"disk": 0}, 422, "$.disk"),
        (POD | {"disk": True}, 422, "$.disk"),
        (POD | {"cloud": "ALL"}, 422, "value must be one of"),
        (POD | {"gpu": {"id": SXM, "count": 0}}, 422, "$.gpu.count"),
        (POD | {"gpu": {"id": SXM, "ids": []}}, 422, "additional properties 'ids'"),
        (POD | {"gpu": {}}, 422, "missing property 'id'"),
        ({"image": "i", "gpu": {"id": SXM}, "disk": 1}, 422, "missing property 'name'"),
        ({"name": "n", "gpu": {"id": SXM}, "disk": 1}, 422, "missing property 'image'"),
        ([POD], 422, "object"),
        (CPU | {"cpu": {"id": "cpu3c", "vcpuCount": 1}}, 422, "vcpuCount"),
        (POD | CPU, 400, "exactly one"),
        ({"name": "n", "image": "i", "disk": 1}, 400, "exactly one"),
        ({"name": "n", "image": "i", "gpu": {"id": SXM}}, 400, "template id or pod configuration"),
        (CPU | {"cpu": {"id": "cpu3c", "vcpuCount": 6}}, 400, "power of two"),
        (CPU | {"cpu": {"id": "cpu3c", "vcpuCount": 64}}, 400, "range"),
        (CPU | {"cpu": {"id": "cpu0x", "vcpuCount": 2}}, 400, "invalid CPU flavor"),
        (CPU | {"cloud": "COMMUNITY"}, 400, "SECURE"),
        (POD | {"gpu": {"id": "NVIDIA X"}}, 400, "invalid GPU type"),
        (POD | {"gpu": {"id": SXM, "count": 9}}, 400, NO_CAPACITY),
        (POD | {"gpu": {"id": SXM, "minRamPerGpu": 999}}, 400, NO_CAPACITY),
        (POD | {"gpu": {"id": SXM, "minVcpuCountPerGpu": 99}}, 400, NO_CAPACITY),
        (POD | {"dataCenterIds": ["us-tx-3"]}, 400, NO_CAPACITY),
        (POD | {"registry": "reg_none"}, 404, "not found"),
        (POD | {"mounts": {"persistent": {"size": 10, "path": "/x"}}}, 400, "mounts"),
        (POD | {"env": {"A": "x" * 102_400}}, 413, "102400"),
    ],
)
def test_a_create_is_checked_as_strictly_as_by_runpod(body: Any, status: int, text: str) -> None:
    api = Api()
    answer = api.call("POST", "/v2/pods", body)
    assert answer.status == status
    problem = json.loads(answer.body)
    assert problem["status"] == status
    assert text in " ".join([problem["detail"], *problem.get("errors", ())])
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.headers["x-request-id"]
    assert api.control("GET", "state")["pods"] == []


def test_the_bound_on_a_body_comes_before_the_key() -> None:
    simulator = Simulator()
    assert simulator.handle("POST", "/v2/pods", {}, {}, b"x" * 102_401).status == 413
    assert simulator.handle("POST", "/v2/pods", {}, {}, b"x").status == 401


@pytest.mark.parametrize("headers", [{}, {"authorization": "Basic x"}, {"authorization": "Bearer "}])
def test_a_call_without_a_bearer_is_refused(headers: dict[str, str]) -> None:
    answer = Simulator().handle("GET", "/v2/pods", {}, headers, b"")
    assert json.loads(answer.body)["detail"] == "missing bearer token"


def test_only_known_keys_are_accepted_once_they_are_set() -> None:
    api = Api()
    api.control("PUT", "keys", {"keys": ["other"]})
    assert api.call("GET", "/v2/pods").status == 401
    api.control("PUT", "keys", {"keys": None})
    assert api.call("GET", "/v2/pods").status == 200


def test_routes_that_are_not_there() -> None:
    api = Api()
    assert api.call("GET", "/v2/nothing").status == 404
    answer = api.call("PUT", "/v2/pods")
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, POST")
    assert api.simulator.control("GET", "nothing").status == 404


def test_a_pod_and_every_list_fit_the_openapi_document() -> None:
    if not document():
        pytest.skip(ABSENT)
    api = Api()
    schemas = document()["components"]["schemas"]
    for content in (POD | {"ports": ["8080/http", "22/tcp"]}, CPU):
        made = api.read("POST", "/v2/pods", content)
        for _ in range(4):
            pod = api.read("GET", f"/v2/pods/{made['id']}")
            assert _errors("pod", schemas["Pod"], pod) == []
            api.clock.advance(timedelta(seconds=1))
    listed = api.read("GET", "/v2/pods")
    assert _errors("list", schemas["ListPodsResponse"], listed) == []
    with_stock = {"include": "AVAILABILITY", "product": "POD"}
    for path, schema in (("gpus", "ListGpuTypesResponse"), ("cpus", "ListCpuTypesResponse")):
        assert _errors(path, schemas[schema], api.read("GET", f"/v2/catalog/{path}", **with_stock)) == []
        assert _errors(path, schemas[schema], api.read("GET", f"/v2/catalog/{path}")) == []
    centers = api.read("GET", "/v2/catalog/datacenters")
    assert _errors("centers", schemas["ListDataCentersResponse"], centers) == []
    assert _errors("problem", schemas["ErrorResponse"], api.read("GET", "/v2/pods/none")) == []


def test_stock_is_taken_given_back_and_shown() -> None:
    api = Api()
    api.control("PUT", "stock", {"type": SXM, "count": 0})
    api.control("PUT", "stock", {"type": SXM, "count": 2, "dataCenter": "EU-RO-1"})
    first, second = api.make(), api.make()
    assert api.call("POST", "/v2/pods", POD).status == 400
    api.call("DELETE", f"/v2/pods/{first}")
    assert api.make(dataCenterIds=["US-TX-3", "EU-RO-1"])
    query = {"include": "AVAILABILITY", "product": "POD"}
    levels = {one["id"]: one["availability"] for one in api.read("GET", "/v2/catalog/gpus", **query)["gpus"]}
    assert (levels[SXM], levels[NVL]) == ("NONE", "HIGH")
    assert second
    api.control("PUT", "stock", {"type": SXM, "count": None})
    assert api.make()


def test_a_hint_may_be_wrong() -> None:
    api = Api()
    api.control("PUT", "stock", {"type": SXM, "count": 0, "advertised": "HIGH"})
    query = {"include": "AVAILABILITY", "product": "POD"}
    levels = {one["id"]: one["availability"] for one in api.read("GET", "/v2/catalog/gpus", **query)["gpus"]}
    assert levels[SXM] == "HIGH"
    assert api.call("POST", "/v2/pods", POD).status == 400


def test_the_clouds_have_a_stock_each() -> None:
    api = Api()
    api.control("PUT", "stock", {"type": SXM, "count": 0, "cloud": "SECURE"})
    assert api.call("POST", "/v2/pods", POD).status == 400
    assert api.make(cloud="COMMUNITY")
    assert api.call("POST", "/v2/pods", POD | {"gpu": {"id": "NVIDIA B200"}, "cloud": "COMMUNITY"}).status == 400


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"include": "AVAILABILITY"}, 400),
        ({"product": "POD"}, 400),
        ({"include": "OTHER", "product": "POD"}, 422),
        ({"include": "AVAILABILITY", "product": "CAR"}, 422),
        ({"include": "AVAILABILITY", "product": "POD", "count": "2", "countryCodes": "RO,SE"}, 200),
    ],
)
def test_the_catalogs_query(query: dict[str, str], status: int) -> None:
    assert Api().call("GET", "/v2/catalog/gpus", **query).status == status


def test_actions_are_legal_by_state() -> None:
    api = Api()
    pod = api.make()
    act = f"/v2/pods/{pod}/action"
    assert api.call("POST", act, {"action": "start"}).status == 409
    assert api.read("POST", act, {"action": "stop"})["status"] == "EXITED"
    assert api.read("POST", act, {"action": "start"})["status"] == "PROVISIONING"
    api.clock.advance(timedelta(seconds=5))
    assert api.read("POST", act, {"action": "restart"})["status"] == "STARTING"
    assert api.call("POST", act, {"action": "dance"}).status == 422
    assert api.call("POST", act, {"action": "terminate"}).status == 204
    assert api.call("POST", act, {"action": "stop"}).status == 404


def test_pages_and_their_cursors() -> None:
    api = Api()
    made = [api.make() for _ in range(5)]
    first = api.read("GET", "/v2/pods", limit="2")
    assert [pod["id"] for pod in first["pods"]] == [made[4], made[3]]
    cursor = first["pagination"]["nextCursor"]
    second = api.read("GET", "/v2/pods", limit="2", cursor=cursor)
    assert [pod["id"] for pod in second["pods"]] == [made[2], made[1]]
    for query in ({"limit": "3", "cursor": cursor}, {"cursor": "junk"}, {"limit": "0"}, {"limit": "1001"}):
        assert api.call("GET", "/v2/pods", None, **query).status == 422


def test_failures_are_scripted_over_control() -> None:
    api = Api()
    script = {"method": "POST", "path": "/v2/pods", "contains": NVL, "status": 400, "detail": NO_CAPACITY, "times": 1}
    api.control("POST", "failures", script)
    assert api.make()
    assert api.call("POST", "/v2/pods", POD | {"gpu": {"id": NVL}}).status == 400
    assert api.make(gpu={"id": NVL})
    api.control("POST", "failures", {"drop": True, "after": True, "method": "POST"})
    with pytest.raises(DroppedError):
        api.make()
    assert api.control("GET", "state")["alive"] == 3
    api.control("POST", "failures", {"times": 9})
    api.control("DELETE", "failures")
    assert api.call("GET", "/v2/pods").status == 200
    assert api.simulator.control("POST", "failures", b'{"nonsense": 1}').status == 400
    assert api.simulator.control("PUT", "chaos", b'{"share": 1, "kinds": ["x"]}').status == 400


def test_a_share_of_calls_fails_repeatably() -> None:
    def run() -> list[int]:
        api = Api()
        api.control("PUT", "chaos", {"share": 0.5, "seed": 7, "kinds": ["429", "500"]})
        return [api.call("GET", "/v2/pods").status for _ in range(40)]

    statuses = run()
    assert statuses == run()
    assert set(statuses) == {200, 429, 500}


def test_the_rest_of_the_controls() -> None:
    api = Api()
    api.control("PUT", "timing", {"provisioning": 0, "starting": 0, "ports": 0, "visible": 9})
    api.control("PUT", "latency", {"seconds": 0.25})
    api.control("PUT", "images", {"missing": ["gone:1"]})
    api.control("PUT", "reads-after-delete", {"status": 200})
    api.control("PUT", "quota", {"limit": 100})
    assert api.simulator.latency == 0.25
    assert api.call("POST", "/v2/pods", POD | {"image": "gone:1"}).status == 422
    pod = api.make()
    assert api.read("GET", "/v2/pods")["pods"] == []
    foreign = api.control("POST", "pods", {"name": "theirs"})["id"]
    api.control("PUT", "pods", {"id": pod, "status": "ERROR", "lines": ["boom"]})
    assert api.read("GET", f"/v2/pods/{pod}")["status"] == "ERROR"
    assert b"boom" in api.call("GET", f"/v2/pods/{pod}/logs", None, source="container").body
    assert api.call("GET", f"/v2/pods/{pod}/logs", None, tail="9999").status == 422
    api.control("DELETE", "pods", {"id": foreign})
    assert api.read("GET", f"/v2/pods/{foreign}")["status"] == "TERMINATED"
    state = api.control("GET", "state")
    assert (state["alive"], state["most_alive"], len(state["pods"])) == (1, 2, 2)
    calls = api.control("GET", "requests")["requests"]
    assert {"method": "GET", "path": "/v2/pods", "query": {}, "status": 200} in calls
    assert api.simulator.control("DELETE", "pods", b'{"id": "none"}').status == 404
