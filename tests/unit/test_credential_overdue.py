"""A credential that cannot be taken back: the figure that alarms, and what the operator is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from botocore.exceptions import EndpointConnectionError
from nebula.credentials.policy import RetirementPolicies
from nebula.domain.credential import CredentialState
from nebula.events.details import DetailType
from nebula.providers.errors import AuthenticationError
from nebula.providers.simulated import Call
from nebula.settings import Settings
from nebula.workflows.credential_report import CredentialLine, report_credentials
from nebula.workflows.retire import acknowledge_revocation

from cli.__main__ import main
from cli.credentials_table import render_report
from cli.installation import FUNCTION
from tests.support.lending import DAY, HOUR, POLICY, Lending


@pytest.fixture
def world() -> Lending:
    """One credential that nothing has used for longer than it may stay."""
    made = Lending()
    made.put_secret()
    made.end(made.start())
    made.clock.advance(7 * DAY + 3 * HOUR)
    return made


def _shown(world: Lending) -> tuple[CredentialLine, str]:
    report = report_credentials(world.services(), RetirementPolicies(default=POLICY))
    (line,) = report.lines
    return line, render_report(report, world.clock.now())


def _alarming(world: Lending) -> float:
    return world.telemetry.total("CredentialRetirementsFailed")


def test_what_stays_listed_after_its_deletion_alarms_each_hour_and_is_shown(
    world: Lending, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.provider, "delete_registry_credential", lambda _: None)
    for hour in (1, 2, 3):
        world.retire()
        assert _alarming(world) == hour, "two hours in a row make the alarm"
        world.clock.advance(HOUR)
    line, text = _shown(world)
    assert line.state == CredentialState.RETIRING
    assert (line.next_action, line.overdue_since is not None) == ("delete again", True)
    assert "simulated accepted its deletion and still lists it" in line.reason
    assert f"  {line.key}: due " in text
    assert "docs/credentials.md#retirement-overdue" in text
    assert "next run" in text
    deferred = world.told(DetailType.CREDENTIAL_RETIREMENT_DEFERRED)
    assert len(deferred) == 1, "told once, not each hour"


def test_a_providers_refusal_is_overdue_and_its_success_is_not(world: Lending) -> None:
    world.provider.script.fail(Call.REGISTRY_DELETE, AuthenticationError("bad key"))
    world.retire()
    line, text = _shown(world)
    assert line.overdue_since is not None
    assert "Authentication" in text
    world.provider.script.heal()
    world.clock.advance(HOUR)
    world.retire()
    report = report_credentials(world.services(), RetirementPolicies(default=POLICY), include_retired=True)
    assert [(one.state, one.overdue_since) for one in report.lines] == [("Retired", None)]


def test_what_live_workloads_hold_is_not_overdue(world: Lending) -> None:
    world.start("again")
    world.clock.advance(8 * DAY)
    world.retire()
    line, text = _shown(world)
    assert (line.live_workloads, line.overdue_since) == (1, None)
    assert "overdue" not in text
    assert _alarming(world) == 0


def test_what_nobody_sees_and_nobody_can_prove_gone_asks_a_person_to_look(world: Lending) -> None:
    other = Lending(account_id=None)
    other.put_secret()
    other.end(other.start())
    other.clock.advance(8 * DAY)
    other.change_key("key-2")
    other.provider._objects.clear()
    other.retire()
    line, text = _shown(other)
    assert line.acknowledge
    assert f"has the registry credential {other.row().key.object_name}" in text
    assert acknowledge_revocation(other.services(), line.key)
    assert other.row().state is CredentialState.RETIRED


def test_a_local_stack_that_does_not_answer_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise EndpointConnectionError(endpoint_url="http://127.0.0.1:4566")

    variables = {f"NEBULA_{name.upper()}": "x" for name, field in Settings.model_fields.items() if field.is_required()}
    path = tmp_path / "env.json"
    path.write_text(json.dumps({FUNCTION: variables}))
    for name in variables:
        monkeypatch.setenv(name, "")
    monkeypatch.setattr("nebula.wiring.build", refuse)
    assert main(["credentials", "--env-file", str(path)]) == 1
    assert "does make stack still run?" in capsys.readouterr().err
