"""A function as the local stack runs it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from local import runtime as local_runtime
from local.deployment import Endpoints, Function
from local.runtime import Runtime, take_environment

APP = """
import os
calls = []
def handler(event, context):
    calls.append(event)
    if event == "fail":
        raise ValueError("no")
    if event == "hang":
        until = __import__("time").monotonic() + 20
        while __import__("time").monotonic() < until:
            try:
                pass
            except Exception:
                pass
    return {"event": event, "left": context.get_remaining_time_in_millis(), "calls": len(calls)}
"""


@pytest.fixture
def function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Function:
    monkeypatch.setattr(local_runtime, "ROOT", tmp_path)
    (tmp_path / "app.py").write_text(APP)
    return Function(
        name="example",
        logical_id="ExampleFunction",
        app="app.py",
        timeout=0.2,
        environment={"AWS_LAMBDA_FUNCTION_NAME": "local-example", "NEBULA_X": "1"},
    )


def test_a_call_returns_plain_data_and_knows_its_time(function: Function) -> None:
    outcome = Runtime(function).invoke({"a": (1, 2)})
    assert outcome.error == ""
    assert outcome.result["event"] == {"a": [1, 2]}
    assert 0 < outcome.result["left"] <= 200


def test_the_module_stays_warm_between_calls(function: Function) -> None:
    runtime = Runtime(function)
    assert [runtime.invoke("x").result["calls"] for _ in range(3)] == [1, 2, 3]


def test_what_a_handler_raises_is_a_failed_call(function: Function) -> None:
    runtime = Runtime(function)
    outcome = runtime.invoke("fail")
    assert outcome.error == "ValueError"
    assert "no" in outcome.trace
    assert runtime.invoke("x").error == ""


def test_a_handler_whose_time_is_up_is_stopped_and_the_next_call_runs(function: Function) -> None:
    runtime = Runtime(function)
    started = time.monotonic()
    assert runtime.invoke("hang").error == "TimedOut"
    assert time.monotonic() - started < 5
    assert runtime.invoke("x").error == ""


def test_a_module_that_cannot_be_imported_fails_each_call(function: Function, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("import nowhere_to_be_found")
    runtime = Runtime(function)
    assert runtime.invoke("x").error == "Runtime.ModuleNotFoundError"
    assert runtime.invoke("x").error == "Runtime.ModuleNotFoundError"


def test_a_function_sees_its_own_environment_only(function: Function, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoints = Endpoints(
        aws="http://127.0.0.1:1", runpod="http://127.0.0.1:2/v2", kubernetes="", runpod_key="k", cluster_token="t"
    )
    environment = {"PATH": "/bin", "AWS_PROFILE": "mine", "NEBULA_OTHER": "2", "SECRET": "s"}
    monkeypatch.setattr("os.environ", environment)
    take_environment(function, endpoints)
    assert environment["PATH"] == "/bin"
    assert environment["NEBULA_X"] == "1"
    assert environment["AWS_ENDPOINT_URL"] == "http://127.0.0.1:1"
    assert not {"AWS_PROFILE", "NEBULA_OTHER", "SECRET"} & set(environment)
