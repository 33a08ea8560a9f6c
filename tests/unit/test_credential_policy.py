"""When a credential goes, what it is called, and what its Secrets say of it: the pure parts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from nebula.credentials.fingerprint import fingerprint, masked
from nebula.credentials.policy import Action, RetirementPolicies, judge, past_max_age, policies
from nebula.credentials.sources import Yield, reconcile
from nebula.domain.credential import Credential, CredentialKey, CredentialState
from nebula.settings import RetirementSettings
from pydantic import SecretStr, ValidationError

from tests.support.lending import DAY, HOUR, KEY, POLICY, START

MINUTE = timedelta(minutes=1)
REQUIRED = {
    "installation_id": "i",
    "event_bus": "b",
    "claims_table": "c",
    "blocks_table": "b",
    "credentials_table": "t",
    "providers_path": "/p",
    "clusters_path": "/c",
    "fingerprint_key_parameter": "/f",
}


def _row(**changes: Any) -> Credential:
    row = Credential(
        key=CredentialKey(provider="runpod", account="default", fingerprint="f" * 32, generation=1),
        registry="r.io",
        sources=("prod/default/a", "prod/default/b"),
        created_at=START,
        last_used_at=START,
    )
    return row.model_copy(update=changes)


SUPERSEDED = {"state": CredentialState.SUPERSEDED, "superseded_at": START + 5 * MINUTE}


@pytest.mark.parametrize(
    ("changes", "live", "after", "action", "due_after"),
    [
        ({}, 0, 7 * DAY - MINUTE, Action.WAIT, 7 * DAY),
        ({}, 0, 7 * DAY, Action.RETIRE, 7 * DAY),
        ({}, 2, 7 * DAY, Action.DEFER, 7 * DAY),
        (SUPERSEDED, 0, HOUR, Action.WAIT, HOUR + 5 * MINUTE),
        (SUPERSEDED, 0, HOUR + 5 * MINUTE, Action.RETIRE, HOUR + 5 * MINUTE),
        (SUPERSEDED, 1, HOUR + 5 * MINUTE, Action.DEFER, HOUR + 5 * MINUTE),
        ({**SUPERSEDED, "last_used_at": START + HOUR}, 0, HOUR + 6 * MINUTE, Action.WAIT, HOUR + 10 * MINUTE),
        ({"state": CredentialState.SUPERSEDED}, 0, 2 * HOUR, Action.WAIT, 7 * DAY),
        ({"expires_at": START + 12 * HOUR}, 0, 12 * HOUR, Action.WAIT, 13 * HOUR),
        ({"expires_at": START + 12 * HOUR}, 0, 13 * HOUR, Action.RETIRE, 13 * HOUR),
        ({"aged_out": True}, 0, 9 * MINUTE, Action.WAIT, 10 * MINUTE),
        ({"aged_out": True}, 0, 10 * MINUTE, Action.RETIRE, 10 * MINUTE),
        ({"state": CredentialState.RETIRING}, 0, timedelta(0), Action.FINISH, None),
        ({"state": CredentialState.RETIRING}, 1, timedelta(0), Action.DEFER, None),
        ({"state": CredentialState.RETIRED}, 0, 99 * DAY, Action.NONE, None),
    ],
)
def test_the_order_of_checks(
    changes: dict[str, Any], live: int, after: timedelta, action: Action, due_after: timedelta | None
) -> None:
    verdict = judge(_row(**changes), live, POLICY, START + after)
    assert verdict.action is action
    assert verdict.due_at == (None if due_after is None else START + due_after)
    assert verdict.reason


def test_a_clock_that_stepped_back_retires_nothing_early() -> None:
    assert judge(_row(last_used_at=START + HOUR), 0, POLICY, START).action is Action.WAIT


@pytest.mark.parametrize(
    ("max_age", "changes", "after", "expected"),
    [
        (None, {}, 999 * DAY, False),
        (30 * DAY, {}, 29 * DAY, False),
        (30 * DAY, {}, 30 * DAY, True),
        (30 * DAY, SUPERSEDED, 30 * DAY, True),
        (30 * DAY, {"aged_out": True}, 30 * DAY, False),
        (30 * DAY, {"state": CredentialState.RETIRING}, 30 * DAY, False),
        (30 * DAY, {"state": CredentialState.RETIRED}, 30 * DAY, False),
    ],
)
def test_maximum_age(max_age: timedelta | None, changes: dict[str, Any], after: timedelta, expected: bool) -> None:
    policy = POLICY.model_copy(update={"max_age": max_age})
    assert past_max_age(_row(**changes), policy, START + after) is expected


def test_settings_make_policies_and_a_provider_may_have_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in REQUIRED.items():
        monkeypatch.setenv(f"NEBULA_{name.upper()}", value)
    monkeypatch.setenv("NEBULA_UNUSED_AFTER", "P3D")
    monkeypatch.setenv("NEBULA_RETIREMENT_GRACE", "PT0S")
    monkeypatch.setenv("NEBULA_MAX_AGE", "")
    monkeypatch.setenv("NEBULA_RETIREMENT_OVERRIDES", '{"runpod": {"unused_after": "PT1H", "dry_run": true}}')
    made = policies(RetirementSettings())
    general, own = made.of("modal"), made.of("runpod")
    assert (general.unused_after, general.superseded_after, general.max_age) == (3 * DAY, HOUR, None)
    assert (own.unused_after, own.superseded_after, own.grace) == (HOUR, HOUR, timedelta(0))
    assert (general.dry_run, own.dry_run) == (False, True)
    assert all(made.rehearsed().of(name).dry_run for name in ("modal", "runpod"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NEBULA_UNUSED_AFTER", "-P1D"),
        ("NEBULA_RETIREMENT_GRACE", "soon"),
        ("NEBULA_RETIREMENT_OVERRIDES", '{"runpod": {"unused": "P1D"}}'),
        ("NEBULA_RETIREMENT_LIMIT", "0"),
    ],
)
def test_a_wrong_policy_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    for required, text in REQUIRED.items():
        monkeypatch.setenv(f"NEBULA_{required.upper()}", text)
    monkeypatch.setenv(name, value)
    with pytest.raises(ValidationError):
        RetirementSettings()


def test_policies_have_bounds() -> None:
    with pytest.raises(ValidationError):
        RetirementPolicies(default=POLICY, limit=0)


A, B = "prod/default/a", "prod/default/b"


@pytest.mark.parametrize(
    ("answers", "state", "sources"),
    [
        ({A: Yield.YES, B: Yield.YES}, CredentialState.ACTIVE, (A, B)),
        ({A: Yield.YES, B: Yield.NO}, CredentialState.ACTIVE, (A,)),
        ({A: Yield.YES, B: Yield.UNKNOWN}, CredentialState.ACTIVE, (A, B)),
        ({A: Yield.YES}, CredentialState.ACTIVE, (A, B)),
        ({A: Yield.NO, B: Yield.UNKNOWN}, CredentialState.ACTIVE, (A, B)),
        ({A: Yield.NO}, CredentialState.ACTIVE, (A, B)),
        ({}, CredentialState.ACTIVE, (A, B)),
        ({A: Yield.NO, B: Yield.NO}, CredentialState.SUPERSEDED, (A, B)),
    ],
)
def test_superseded_only_when_every_source_was_read_and_none_yields_it(
    answers: dict[str, Yield], state: CredentialState, sources: tuple[str, ...]
) -> None:
    row = _row()
    after = reconcile(row, answers, START + HOUR)
    assert (after.state, after.sources) == (state, sources)
    assert (after.superseded_at is not None) == (state is CredentialState.SUPERSEDED)
    assert (after is row) == (after == row), "an unchanged row is the same object, so that nothing is written"


def test_a_rollback_makes_a_superseded_row_active_and_silence_does_not() -> None:
    row = _row(**SUPERSEDED, revocation_announced_at=START, revocation_acknowledged_at=START)
    assert reconcile(row, {A: Yield.NO, B: Yield.UNKNOWN}, START + DAY) is row
    assert reconcile(row, {A: Yield.NO, B: Yield.NO}, START + DAY) is row
    back = reconcile(row, {A: Yield.NO, B: Yield.YES}, START + DAY)
    assert (back.state, back.superseded_at, back.sources) == (CredentialState.ACTIVE, None, (B,))
    assert back.revocation_announced_at is None
    assert back.revocation_acknowledged_at is None


@pytest.mark.parametrize("state", [CredentialState.RETIRING, CredentialState.RETIRED])
def test_what_is_being_retired_is_not_reconsidered(state: CredentialState) -> None:
    row = _row(state=state)
    assert reconcile(row, {A: Yield.YES, B: Yield.YES}, START) is row


def test_a_fingerprint_is_keyed_framed_and_fit_for_a_name() -> None:
    def of(registry: str, user: str, password: str, key: SecretStr = KEY) -> str:
        return fingerprint(key, registry, SecretStr(user), SecretStr(password))

    one = of("r.io", "user", "password")
    assert one == of("r.io", "user", "password")
    assert len(one) == 32
    assert set(one) <= set("0123456789abcdef")
    others = {
        of("r.io", "user", "password", SecretStr("another key")),
        of("r.iou", "ser", "password"),
        of("r.io", "userp", "assword"),
        of("r.io", 'user","password', ""),
        of("s.io", "user", "password"),
    }
    assert len(others) == 5
    assert one not in others
    with pytest.raises(ValueError, match="empty"):
        of("r.io", "user", "password", SecretStr(""))


@pytest.mark.parametrize(("user", "shown"), [("alice", "a***"), ("al", "a***"), ("a", "***"), ("", "***")])
def test_a_user_is_masked_without_its_length(user: str, shown: str) -> None:
    assert masked(SecretStr(user)) == shown
