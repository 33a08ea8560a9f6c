"""What only a person can do is asked for until it is acknowledged."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest
from nebula.credentials.policy import RetirementPolicies
from nebula.domain.credential import CredentialState
from nebula.events.details import DetailType
from nebula.events.envelope import MalformedEventError
from nebula.providers.errors import ProviderUnavailableError
from nebula.providers.simulated import Call
from nebula.workflows.credential_report import CredentialReport, report_credentials
from nebula.workflows.revoke import acknowledge_revocation, acknowledgeable, publish_acknowledgement

from cli.credentials_table import render_report
from tests.support.lending import DAY, HOUR, PASSWORD, POLICY, Lending

REQUIRED = DetailType.CREDENTIAL_REVOCATION_REQUIRED


@pytest.fixture
def rotated() -> Lending:
    """A password that no Secret yields any more, and whose workload has gone."""
    world = Lending()
    world.put_secret()
    world.end(world.start())
    world.put_secret(f"{PASSWORD}-2")
    world.retire()
    return world


def _acknowledge(world: Lending, key: str | None = None) -> bool:
    return acknowledge_revocation(world.services(function="credential_retirement"), key or str(world.rows()[0].key))


def test_a_superseded_password_is_to_be_revoked(rotated: Lending) -> None:
    (told,) = rotated.told(REQUIRED)
    assert told.credential_key == str(rotated.row().key)
    assert "revoke it at registry.example.com" in told.reason
    assert "prod/default/pull" in told.reason


def test_the_reminder_comes_weekly_whatever_became_of_the_object(rotated: Lending) -> None:
    rotated.clock.advance(2 * HOUR)
    rotated.retire()
    assert rotated.row().state is CredentialState.RETIRED
    for week in range(1, 4):
        rotated.clock.advance(6 * DAY)
        rotated.retire()
        assert len(rotated.told(REQUIRED)) == week, "not sooner than a week"
        rotated.clock.advance(DAY)
        rotated.retire()
        assert len(rotated.told(REQUIRED)) == week + 1


def test_acknowledging_ends_it(rotated: Lending) -> None:
    assert _acknowledge(rotated)
    assert not acknowledgeable(rotated.row())
    rotated.clock.advance(30 * DAY)
    rotated.retire()
    assert len(rotated.told(REQUIRED)) == 1
    assert not _acknowledge(rotated), "twice is no harm"
    rotated.retire()
    assert rotated.row().state is CredentialState.RETIRED


def test_a_password_that_came_back_and_went_again_is_asked_for_again(rotated: Lending) -> None:
    assert _acknowledge(rotated)
    rotated.put_secret()
    rotated.end(rotated.start("again"))
    rotated.delete_secret()
    rotated.retire()
    assert len(rotated.told(REQUIRED)) == 2


def test_an_older_generation_does_not_ask_while_a_newer_one_is_in_use(rotated: Lending) -> None:
    rotated.clock.advance(2 * HOUR)
    rotated.retire()
    rotated.put_secret()
    rotated.start("again")
    assert [row.key.generation for row in rotated.rows()] == [1, 2]
    rotated.clock.advance(30 * DAY)
    rotated.retire()
    assert len(rotated.told(REQUIRED)) == 1


def test_a_password_that_expires_by_itself_needs_nobody() -> None:
    world = Lending()
    world.put_secret()
    world.start()
    row = world.row()
    world.credentials.save(row, row.model_copy(update={"expires_at": world.clock.now() + 12 * HOUR}))
    world.delete_secret()
    world.retire()
    assert world.row().superseded_at is not None
    assert world.told(REQUIRED) == []
    assert not acknowledgeable(world.row())
    world.end(world.claims.all()[0])
    world.clock.advance(DAY)
    world.retire()
    assert world.row().state is CredentialState.RETIRED
    report = report_credentials(world.services(), RetirementPolicies(default=POLICY))
    assert report.lines == (), "each twelve hours one more would be left"


def test_a_credential_that_was_only_unused_asks_for_nothing() -> None:
    world = Lending()
    world.put_secret()
    world.end(world.start())
    world.clock.advance(8 * DAY)
    world.retire()
    assert world.row().state is CredentialState.RETIRED
    assert world.told(REQUIRED) == []
    assert not _acknowledge(world)


def test_a_reminder_that_the_bus_refused_comes_with_the_next_run() -> None:
    world = Lending()
    world.put_secret()
    world.start()
    world.delete_secret()
    world.publisher.fail_next(2)
    world.retire()
    assert world.told(REQUIRED) == []
    assert world.row().revocation_announced_at is None
    world.retire()
    assert len(world.told(REQUIRED)) == 1


@pytest.mark.parametrize("key", ["", "runpod", "a/b/c/x", "a/b/c/0", "a/b/c/1/2"])
def test_a_key_that_is_none_is_refused(rotated: Lending, key: str) -> None:
    with pytest.raises(MalformedEventError):
        acknowledge_revocation(rotated.services(), key)


def test_an_unknown_key_is_noted_and_harms_nothing(rotated: Lending) -> None:
    assert not _acknowledge(rotated, f"runpod/default/{'0' * 32}/1")
    assert any(message == "nothing to acknowledge" for _, message, _ in rotated.telemetry.lines)


def test_the_command_says_it_on_the_bus_for_the_function_to_write(rotated: Lending) -> None:
    publish_acknowledgement(rotated.services(function="operator"), rotated.row())
    (event,) = rotated.publisher.of_type(DetailType.CREDENTIAL_REVOCATION_ACKNOWLEDGED)
    assert event.source == "nebula.operator"
    assert rotated.row().revocation_acknowledged_at is None
    detail = SimpleNamespace(**event.detail.model_dump())
    assert _acknowledge(rotated, detail.credential_key)


def test_a_revoked_password_does_not_make_its_object_gone(rotated: Lending) -> None:
    rotated.clock.advance(2 * HOUR)
    rotated.provider.script.fail(Call.REGISTRY_DELETE, ProviderUnavailableError("gateway timeout"))
    rotated.retire()
    assert rotated.row().state is CredentialState.RETIRING
    (line,) = report_credentials(rotated.services(), RetirementPolicies(default=POLICY)).lines
    assert (line.unproved, line.revoke) == (False, True)
    assert "revoke the password" in render_report(CredentialReport(lines=(line,)), rotated.clock.now())
    assert _acknowledge(rotated)
    assert rotated.row().state is CredentialState.RETIRING, "it still lies at the provider"
    rotated.clock.advance(HOUR)
    rotated.retire()
    assert rotated.row().state is CredentialState.RETIRED
    assert rotated.objects() == []


def test_the_word_of_a_person_settles_an_absence_that_nobody_can_prove() -> None:
    world = Lending(account_id=None)
    world.put_secret()
    world.end(world.start())
    world.provider.remove(str(world.row().provider_id))
    world.change_key("another")
    world.clock.advance(8 * DAY)
    assert not acknowledgeable(world.row())
    world.retire()
    assert world.row().state is CredentialState.RETIRING
    assert acknowledgeable(world.row())
    (line,) = report_credentials(world.services(), RetirementPolicies(default=POLICY)).lines
    assert (line.unproved, line.revoke) == (True, False)
    assert _acknowledge(world)
    row = world.row()
    assert (row.state, row.retired_at) == (CredentialState.RETIRED, world.clock.now())
    world.clock.advance(timedelta(hours=1))
    world.retire()
    assert world.row() == row
