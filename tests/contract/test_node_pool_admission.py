"""A real API server's word on the CRD: admitted as it is, defaults filled in, bad specs refused (CEL included)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.kubernetes_api import NODE_POOLS, Api, unique
from tests.support.kubernetes_targets import running
from tests.support.node_pools import ADDITIONS, OPERATOR, REFUSED

pytestmark = [pytest.mark.apiserver, pytest.mark.network]
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRD = Path(__file__).parents[2] / "cluster/crds/nodepools.yaml"


@pytest.fixture(scope="module")
def server() -> Iterator[Api]:
    with running("apiserver") as api:
        definition = yaml.safe_load(CRD.read_text())
        status, answer = api.call("POST", DEFINITIONS, definition)
        assert status in (201, 409), answer
        for _ in range(100):
            if api.call("GET", NODE_POOLS)[0] == 200:
                break
            time.sleep(0.1)
        yield api


def submit(server: Api, spec: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    metadata = {"name": unique("pool")}
    body = {"apiVersion": "nebula.inftyai.com/v1alpha1", "kind": "NodePool", "metadata": metadata, "spec": spec}
    return server.call("POST", NODE_POOLS, body, query={"fieldValidation": "Strict"})


@pytest.mark.parametrize("name", [*OPERATOR, *ADDITIONS])
def test_valid_specs_are_admitted(server: Api, name: str) -> None:
    spec = {**OPERATOR, **ADDITIONS}[name]
    status, answer = submit(server, spec)
    assert status == 201, answer
    assert set(spec) <= set(answer["spec"])
    assert [p["name"] for p in answer["spec"]["providers"]] == [p["name"] for p in spec["providers"]]


@pytest.mark.parametrize("name", REFUSED)
def test_bad_specs_are_refused(server: Api, name: str) -> None:
    status, answer = submit(server, REFUSED[name][0])
    assert status == 422, answer


def test_defaults_are_filled_in(server: Api) -> None:
    _, answer = submit(server, {**OPERATOR["least"], "failover": {}, "ingress": {}})
    assert (answer["spec"]["strategy"], answer["spec"]["capacityTypes"]) == ("Ordered", ["OnDemand", "Spot"])
    assert answer["spec"]["failover"]["blocklistTTL"] == "30s"
    assert answer["spec"]["ingress"] == {"mode": "None", "authentication": "Provider"}
