"""Clusters by parameter: what is wrong with one is said by field, never by content."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from nebula.clock import ManualClock
from nebula.kubernetes.api import ClusterUnavailableError
from nebula.kubernetes.clusters import ParameterClusters
from nebula.parameters import MemoryParameters

from local.certificates import for_loopback

CLOCK = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
BEARER = {"type": "bearer", "token": "hunter2"}
EKS = {"type": "eks", "cluster": "prod", "region": "eu-west-1"}
CA = base64.b64encode(for_loopback().authority.encode()).decode()


def access(**changes: Any) -> dict[str, Any]:
    return {"server": "https://k.example:6443", "ca": CA, "auth": BEARER, **changes}


def clusters(**values: Any) -> tuple[ParameterClusters, MemoryParameters]:
    texts = {f"/c/{name}": value if isinstance(value, str) else json.dumps(value) for name, value in values.items()}
    parameters = MemoryParameters(texts)
    return ParameterClusters(parameters, "/c/", CLOCK), parameters


def test_one_client_serves_a_warm_process_until_its_parameter_changes() -> None:
    found, parameters = clusters(b=access(), a=access(auth=EKS))
    assert found.names() == ("a", "b")
    first = found.get("a")
    assert found.get("a") is first
    assert first.name == "a"
    parameters.values["/c/a"] = json.dumps(access())
    assert found.get("a") is not first


def test_an_unknown_name_is_a_key_error_and_an_unreadable_one_is_unknown() -> None:
    found, parameters = clusters(a=access())
    with pytest.raises(KeyError):
        found.get("b")
    parameters.unavailable = True
    with pytest.raises(ClusterUnavailableError, match="cannot be read"):
        found.get("a")


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("hunter2", "JSON"),
        ('{"server": "https://hunter2.example", "auth": {"type": "bearer", "token": "hunter2"', "JSON"),
        ('["hunter2"]', "JSON"),
        (access(server="http://k.example/hunter2"), "server"),
        (access(server="https://"), "server"),
        (access(server="https://k example"), "server"),
        (access(server="ftp://hunter2"), "server"),
        (access(server="http://127.0.0.1.hunter2.example"), "server"),
        (access(auth={"type": "bearer", "token": ""}), "auth.bearer.token"),
        (access(auth={"type": "basic", "password": "hunter2"}), "auth"),
        (access(auth={**EKS, "region": "hunter2"}), "auth.eks.region"),
        (access(auth={**EKS, "cluster": ""}), "auth.eks.cluster"),
        (access(auth={**BEARER, "hunter2": 1}), "auth.bearer.hunter2"),
        (access(token="hunter2"), "token"),
        (access(ca="not base64 hunter2"), "ca"),
        (access(ca=base64.b64encode(b"hunter2").decode()), "ca"),
        (access(ca=base64.b64encode("hunter2 é".encode()).decode()), "ca"),
    ],
)
def test_a_wrong_parameter_names_its_field_and_shows_nothing_of_it(text: Any, field: str) -> None:
    found, _ = clusters(a=text, good=access())
    with pytest.raises(ClusterUnavailableError) as raised:
        found.get("a")
    told = str(raised.value)
    assert told == f"the parameter of cluster a is wrong in: {field}"
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__
    assert found.get("good").name == "good"


@pytest.mark.parametrize(
    "server", ["https://k.example", "https://k.example/path", "https://[::1]:6443", "http://127.0.0.1:4568"]
)
def test_tls_or_this_machine(server: str) -> None:
    found, _ = clusters(a=access(server=server))
    assert found.get("a").name == "a"


@pytest.mark.parametrize("ca", [None, ""])
def test_without_an_authority_the_public_ones_are_trusted(ca: str | None) -> None:
    found, _ = clusters(a=access(ca=ca))
    assert found.get("a").name == "a"
