"""Retirement under faults: crashes at every call, errors of a provider, a changed key, an absence nobody can prove."""

from __future__ import annotations

from datetime import timedelta

import pytest
from nebula.domain.credential import CredentialState
from nebula.providers.errors import (
    AuthenticationError,
    InsufficientBalanceError,
    ProviderError,
    ProviderUnavailableError,
    RateLimitedError,
    RequestRefusedError,
)
from nebula.providers.simulated import Call, SimulatedProvider
from nebula.workflows.retire_outcome import Kind

from tests.support.lending import DAY, HOUR, PASSWORD, Lending
from tests.support.tripwire import CrashError, Tripwire

ACTIVE, RETIRING, RETIRED = CredentialState.ACTIVE, CredentialState.RETIRING, CredentialState.RETIRED
WATCHED = {
    "credentials": ("all", "save"),
    "claims": ("find_by_credential",),
    "publisher": ("publish",),
    "provider": ("list_registry_credentials", "delete_registry_credential"),
}


def _unused(count: int = 1, account_id: str | None = "acct") -> Lending:
    """Credentials that nobody used for a week."""
    world = Lending(account_id=account_id)
    for number in range(count):
        world.put_secret(f"{PASSWORD}-{number}", name=f"s{number}")
        world.end(world.start(f"pod-{number}", f"s{number}"))
        world.clock.advance(timedelta(seconds=1))
    world.clock.advance(7 * DAY)
    return world


def _calls(account_id: str | None) -> int:
    world = _unused(2, account_id)
    wire = _wired(world)
    world.retire()
    assert world.objects() == []
    return len(wire.log)


def _wired(world: Lending) -> Tripwire:
    wire = Tripwire()
    for name, methods in WATCHED.items():
        wire.watch(name, getattr(world, name), methods)
    return wire


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("account_id", ["acct", None])
def test_a_crash_anywhere_is_made_good_by_the_next_run(account_id: str | None, after: bool) -> None:
    calls = _calls(account_id)
    assert calls >= 12
    for number in range(1, calls + 1):
        world = _unused(2, account_id)
        wire = _wired(world)
        wire.arm(number, after=after)
        with pytest.raises(CrashError):
            world.retire()
        wire.disarm()
        world.clock.advance(HOUR)
        world.retire()
        assert world.objects() == [], f"crash at call {number} ({wire.log[number - 1]})"
        assert world.states() == [RETIRED, RETIRED], f"crash at call {number} ({wire.log[number - 1]})"


def test_a_second_run_leaves_a_row_alone_that_another_one_holds() -> None:
    world = _unused()
    row = world.row()
    world.credentials.save(row, row.model_copy(update={"state": RETIRING, "retiring_at": world.clock.now()}))
    (outcome,) = world.retire().outcomes
    assert (outcome.kind, outcome.reason) == (Kind.DEFERRED, "another run is at it")
    assert len(world.objects()) == 1
    world.clock.advance(timedelta(seconds=330))
    assert world.retire().of(Kind.RETIRED)


@pytest.mark.parametrize(
    "error",
    [
        ProviderUnavailableError("gateway timeout", code="504"),
        RateLimitedError("slow down", retry_after=timedelta(seconds=20), code="429"),
        AuthenticationError("bad key", code="401"),
        InsufficientBalanceError("no money", code="402"),
        RequestRefusedError("no", code="400"),
    ],
)
@pytest.mark.parametrize("call", [Call.REGISTRY_LIST, Call.REGISTRY_DELETE, Call.ACCOUNT])
def test_a_providers_error_puts_off_and_stops_no_other_provider(error: ProviderError, call: Call) -> None:
    clock = Lending().clock
    broken, sound = (SimulatedProvider(clock, name=name, account_id="acct") for name in ("broken", "sound"))
    world = Lending(broken, sound)
    world.clock = clock
    for provider in (sound, broken):
        world.provider = provider
        world.put_secret()
        world.end(world.start(provider.name))
    clock.advance(8 * DAY)
    broken.script.fail(call, error, times=99)
    report = world.retire()
    assert [o.key.split("/")[0] for o in report.of(Kind.RETIRED)] == ["sound"]
    (failed,) = report.of(Kind.FAILED)
    assert failed.reason == f"broken: {type(error).__name__.removesuffix('Error')} {error.code}"
    assert len(world.objects()) == 1
    assert world.telemetry.total("CredentialRetirementsFailed") == 1
    broken.script.heal()
    clock.advance(HOUR)
    assert len(world.retire().of(Kind.RETIRED)) == 1


@pytest.mark.parametrize(
    ("error", "tried"),
    [
        (ProviderUnavailableError("gateway timeout"), 3),
        (RateLimitedError("slow down", retry_after=timedelta(seconds=20)), 1),
        (AuthenticationError("bad key"), 1),
        (RequestRefusedError("no"), 6),
    ],
)
def test_an_error_that_every_call_would_meet_ends_the_provider_for_this_run(error: ProviderError, tried: int) -> None:
    world = _unused(6)
    world.provider.script.fail(Call.REGISTRY_DELETE, error, times=99)
    world.retire()
    assert world.provider.script.counts[Call.REGISTRY_DELETE] == tried
    assert world.states().count(RETIRING) == tried
    assert world.states().count(ACTIVE) == 6 - tried


def test_one_credential_that_always_fails_does_not_keep_the_others() -> None:
    world = _unused(6)
    stuck = str(world.rows()[0].provider_id)
    world.provider.script.fail(
        Call.REGISTRY_DELETE, ProviderUnavailableError("broken"), times=99, matches=lambda subject: subject == stuck
    )
    for _ in range(3):
        world.retire(limit=3)
        world.clock.advance(HOUR)
    assert world.states().count(RETIRED) == 5
    assert len(world.objects()) == 1


def test_an_answer_that_was_lost_is_no_harm() -> None:
    world = _unused()
    world.provider.script.fail(Call.REGISTRY_DELETE, ProviderUnavailableError("cut line"), after=True)
    world.retire()
    assert (world.row().state, world.objects()) == (RETIRING, [])
    world.clock.advance(HOUR)
    world.retire()
    assert world.row().state is RETIRED


def test_what_is_still_listed_after_its_deletion_is_not_retired(monkeypatch: pytest.MonkeyPatch) -> None:
    world = _unused()
    monkeypatch.setattr(world.provider, "delete_registry_credential", lambda _: None)
    (outcome,) = world.retire().outcomes
    assert (outcome.kind, outcome.reason) == (Kind.FAILED, "simulated accepted its deletion and still lists it")
    assert world.row().state is RETIRING
    monkeypatch.undo()
    world.clock.advance(HOUR)
    world.retire()
    assert (world.row().state, world.objects()) == (RETIRED, [])


def test_an_object_listed_without_an_id_is_neither_deleted_nor_taken_for_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    world = _unused()
    nameless = tuple(o.model_copy(update={"id": ""}) for o in world.provider.list_registry_credentials())
    monkeypatch.setattr(world.provider, "list_registry_credentials", lambda: nameless)
    (outcome,) = world.retire().of(Kind.FAILED)
    assert outcome.reason == "simulated lists it without an id"
    assert world.row().state is RETIRING


def test_a_key_of_another_account_deletes_nothing_and_proves_nothing() -> None:
    world = _unused()
    world.provider.account_id = "somebody-else"
    (outcome,) = world.retire().outcomes
    assert (outcome.kind, outcome.reason) == (Kind.FAILED, "it was lent to another account than the key's")
    assert (world.row().state, len(world.objects())) == (ACTIVE, 1)


def test_an_object_deleted_by_hand_is_gone_where_the_key_is_the_one_it_was_lent_with() -> None:
    world = _unused(account_id=None)
    world.provider._objects.clear()
    world.retire()
    assert world.row().state is RETIRED


def test_where_the_account_is_not_told_another_keys_empty_list_is_not_an_absence() -> None:
    world = _unused(account_id=None)
    kept = dict(world.provider._objects)
    world.provider._objects.clear()
    world.change_key("of another account")
    for _ in range(2):
        (outcome,) = world.retire().outcomes
        assert outcome.kind is Kind.FAILED
        assert "may show another account" in outcome.reason
        world.clock.advance(HOUR)
    row = world.row()
    assert (row.state, row.unseen_since) == (RETIRING, world.clock.now() - 2 * HOUR)
    world.provider._objects.update(kept)
    world.retire()
    assert (world.row().state, world.row().unseen_since, world.objects()) == (RETIRED, None, [])


def test_another_key_of_the_same_account_retires_what_the_former_one_lent() -> None:
    world = _unused(account_id=None)
    world.change_key("of the same account")
    world.retire()
    assert (world.row().state, world.objects()) == (RETIRED, [])


def test_a_new_key_shows_something_lent_with_the_former_one_and_so_proves_the_account() -> None:
    world = Lending(account_id=None)
    world.put_secret(f"{PASSWORD}-witness", name="witness")
    world.start("witness", "witness")
    world.put_secret()
    world.end(world.start())
    gone = next(row for row in world.rows() if row.key.fingerprint == world.fingerprint())
    world.provider.remove(str(gone.provider_id))
    world.change_key("of the same account")
    world.clock.advance(8 * DAY)
    world.retire()
    assert {row.key.fingerprint: row.state for row in world.rows()}[world.fingerprint()] is RETIRED


def test_something_lent_with_the_new_key_proves_nothing_of_the_former_one() -> None:
    world = _unused(account_id=None)
    world.provider._objects.clear()
    world.change_key("of another account")
    world.start("new", "s0")
    assert [row.key.generation for row in world.rows()] == [1, 2], "the former object is not forgotten"
    world.clock.advance(HOUR)
    world.retire()
    assert world.rows()[0].state is RETIRING


@pytest.mark.parametrize("account_id", ["acct", None])
def test_an_object_that_came_back_under_a_retired_row_goes_again(account_id: str | None) -> None:
    world = _unused(account_id=account_id)
    world.retire()
    world.provider.add(world.row().key.object_name)
    assert [o.reason for o in world.retire().of(Kind.RETIRED)] == ["its object had come back"]
    assert world.objects() == []


def test_an_object_that_came_back_and_cannot_be_deleted_is_reported() -> None:
    world = _unused()
    world.retire()
    world.provider.add(world.row().key.object_name)
    world.provider.script.fail(Call.REGISTRY_DELETE, ProviderUnavailableError("gateway timeout"))
    row = world.row()
    assert len(world.retire().of(Kind.FAILED)) == 1
    assert world.row() == row
