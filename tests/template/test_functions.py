"""Functions, layers, schedules and settings."""

from __future__ import annotations

import json
import tomllib
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from nebula.events.details import TickDetail
from nebula.events.envelope import parse_envelope
from nebula.settings import RetirementSettings, Settings, SweepSettings
from pydantic import TypeAdapter

from tests.support.cloudformation import FUNCTIONS, allowed, logical_id, of_type, properties, written

ROOT = Path(__file__).resolve().parents[2]
MODELS: dict[str, type[Settings]] = {
    "placement": Settings,
    "provisioning": Settings,
    "status_polling": SweepSettings,
    "credential_retirement": RetirementSettings,
}
PARAMETERS = {name: str(spec["Default"]) for name, spec in written()["Parameters"].items()}


def _environment(function: str) -> dict[str, Any]:
    found: dict[str, Any] = properties(FUNCTIONS[function])["Environment"]["Variables"]
    return found


def _plain(value: Any) -> str:
    """The value where it is a literal or a parameter, else a stand-in of the right kind."""
    if isinstance(value, dict):
        return PARAMETERS.get(value.get("Ref", ""), "stand-in")
    return str(value)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_environment_is_exactly_what_the_settings_read(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {k: _plain(v) for k, v in _environment(function).items()}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    settings = MODELS[function]()
    known = {f"NEBULA_{field.upper()}" for field in type(settings).model_fields}
    assert {name for name in environment if name.startswith("NEBULA_")} <= known


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_lease_outlives_the_longest_call_that_may_hold_it_by_thirty_seconds(function: str) -> None:
    lease = TypeAdapter(timedelta).validate_python(_environment(function)["NEBULA_LEASE"])
    assert lease.total_seconds() == properties(FUNCTIONS["provisioning"])["Timeout"] + 30


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_function_runs_its_app_with_both_layers_on_arm(function: str) -> None:
    own = properties(FUNCTIONS[function])
    assert own["Code"]["S3Key"] == f"functions/{function}"
    assert own["Handler"] == "app.handler"
    assert own["Architectures"] == ["arm64"]
    assert own["Runtime"] == {"Ref": "Runtime"}
    assert {logical_id(arn) for arn in own["Layers"]} == set(of_type("AWS::Lambda::LayerVersion"))


def test_the_runtime_is_a_parameter() -> None:
    assert PARAMETERS["Runtime"] == "python3.13"
    assert written()["Resources"]["DependenciesLayer"]["Metadata"]["BuildMethod"] == {"Ref": "Runtime"}


def test_the_provider_layer_is_zipped_as_it_is() -> None:
    # With a build method SAM would put it into python/python/, where Lambda does not look.
    layer = written()["Resources"]["ProviderLayer"]
    assert "Metadata" not in layer
    assert (ROOT / layer["Properties"]["ContentUri"] / "python" / "nebula" / "__init__.py").is_file()


def test_dependencies_are_pinned() -> None:
    for name in ("layers/dependencies/requirements.txt", "requirements-dev.txt", "requirements-sam.txt"):
        lines = [line.strip() for line in (ROOT / name).read_text().splitlines()]
        loose = [line for line in lines if line and not line.startswith(("#", "-r ")) and "==" not in line]
        assert loose == []


def test_the_default_deployment_restricts_no_provider() -> None:
    assert not [name for name in PARAMETERS if "rovider" in name]
    for function in FUNCTIONS:
        assert {n for n in _environment(function) if "PROVIDER" in n} == {"NEBULA_PROVIDERS_PATH"}


SCHEDULES = {
    "StatusSchedule": ("StatusPollingFunction", "rate(1 minute)", "Status Poll Scheduled"),
    "RetirementSchedule": ("CredentialRetirementFunction", "rate(1 hour)", "Credential Retirement Scheduled"),
}


def test_there_are_two_schedules() -> None:
    assert set(of_type("AWS::Scheduler::Schedule")) == set(SCHEDULES)


@pytest.mark.parametrize("name", SCHEDULES)
def test_each_schedule_wakes_its_function_with_an_envelope(name: str) -> None:
    function, rate, detail_type = SCHEDULES[name]
    schedule = properties(name)
    target = schedule["Target"]
    assert schedule["ScheduleExpression"] == rate
    assert logical_id(target["Arn"]) == function
    envelope = parse_envelope(json.loads(target["Input"]))
    assert (envelope.source, envelope.detail_type) == ("nebula.schedule", detail_type)
    assert envelope.read(TickDetail).schema_version == 1


@pytest.mark.parametrize("name", SCHEDULES)
def test_each_schedule_has_a_retry_policy_dead_letters_and_the_right_to_use_both(name: str) -> None:
    target = properties(name)["Target"]
    assert set(target["RetryPolicy"]) == {"MaximumRetryAttempts", "MaximumEventAgeInSeconds"}
    assert logical_id(target["DeadLetterConfig"]["Arn"]) == "UndeliveredDeadLetters"
    assert logical_id(target["RoleArn"]) == "SchedulerRole"
    assert "sqs:SendMessage" in allowed("SchedulerRole", "sqs")["UndeliveredDeadLetters"]
    assert "lambda:InvokeFunction" in allowed("SchedulerRole", "lambda")[logical_id(target["Arn"])]


@pytest.mark.parametrize("function", ["status_polling", "credential_retirement"])
def test_a_direct_invocation_that_failed_is_kept(function: str) -> None:
    configs = of_type("AWS::Lambda::EventInvokeConfig").values()
    (config,) = (c for c in configs if logical_id(c["FunctionName"]) == FUNCTIONS[function])
    assert logical_id(config["DestinationConfig"]["OnFailure"]["Destination"]) == "UndeliveredDeadLetters"


@pytest.mark.parametrize("environment", ["default", "prod"])
def test_samconfig_sets_parameters_that_exist(environment: str) -> None:
    config = tomllib.loads((ROOT / "samconfig.toml").read_text())[environment]
    overrides = config["deploy"]["parameters"].get("parameter_overrides", [])
    assert {o.split("=", 1)[0] for o in overrides} <= set(PARAMETERS)
    assert config["deploy"]["parameters"]["capabilities"] == "CAPABILITY_IAM"
