"""Settings from the environment: prefix, types, what is missing, and what an error may show."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pytest
from nebula.environment_model import EnvironmentModel
from nebula.settings import RetirementSettings
from pydantic import ValidationError


class Plain(EnvironmentModel):
    table: str
    lease: timedelta = timedelta(seconds=1)
    rehearse: bool = False


def test_fields_are_read_by_their_prefixed_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TABLE", "not this one")
    monkeypatch.setenv("NEBULA_TABLE", "claims")
    monkeypatch.setenv("NEBULA_LEASE", "PT2M")
    monkeypatch.setenv("NEBULA_REHEARSE", "true")
    read = Plain.from_environment()
    assert (read.table, read.lease, read.rehearse) == ("claims", timedelta(minutes=2), True)


def test_what_is_given_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEBULA_TABLE", "claims")
    assert Plain.from_environment(table="other").table == "other"


def test_a_missing_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEBULA_TABLE", raising=False)
    with pytest.raises(ValidationError, match=r"table\n  Field required"):
        Plain.from_environment()


def test_an_error_shows_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEBULA_TABLE", "claims")
    monkeypatch.setenv("NEBULA_LEASE", "s3cr3t")
    with pytest.raises(ValidationError) as caught:
        Plain.from_environment()
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("text", ["{", "[]", '"runpod"'])
def test_overrides_that_are_no_json_object_are_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("NEBULA_RETIREMENT_OVERRIDES", text)
    with pytest.raises(ValidationError, match="retirement_overrides"):
        RetirementSettings.from_environment()


@pytest.mark.parametrize("function", ["placement", "provisioning", "status_polling", "credential_retirement"])
def test_a_function_imports_nothing_heavy_that_it_does_not_use(function: str) -> None:
    """Each of these costs a cold start tens of milliseconds or more."""
    code = (
        "import runpy, sys; runpy.run_path(sys.argv[1]); "
        "print(*sorted({name.split('.')[0] for name in sys.modules} & set(sys.argv[2:])))"
    )
    unwanted = ["boto3", "s3transfer", "pydantic_settings", "dotenv", "modal", "moto", "yaml", "responses"]
    path = f"functions/{function}/app.py"
    done = subprocess.run([sys.executable, "-c", code, path, *unwanted], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
