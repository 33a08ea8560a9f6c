"""Lending: the row first, touched by every use, safe against another use, a retirement and a hand in the console."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from nebula.domain.credential import CredentialKey, CredentialState
from nebula.events.details import DetailType
from nebula.kubernetes.pull_secrets import find_pull_credential
from nebula.providers.base import Provider
from nebula.providers.errors import ProviderUnavailableError, RequestRefusedError
from nebula.providers.simulated import Call
from nebula.stores.credentials import CredentialConflictError
from nebula.workflows.lend import (
    MAX_SOURCES,
    CredentialExpiredError,
    CredentialMovedError,
    ensure_credential,
    forget_credential,
    key_account,
    record_credential,
)

from tests.support.lending import DAY, HOUR, PASSWORD, USER, Lending, docker_config, pod, pull_secret

MINUTE = timedelta(minutes=1)


@pytest.fixture
def world() -> Lending:
    made = Lending()
    made.put_secret()
    return made


def _move(world: Lending, **changes: object) -> None:
    row = world.row()
    world.credentials.save(row, row.model_copy(update=changes))


def test_the_row_is_there_before_the_provider_is_called(world: Lending) -> None:
    seen: list[CredentialState] = []
    world.provider.script.before_each(lambda call, _: seen.extend(world.states()) if "registry" in call else None)
    key, pull = world.record()
    assert world.provider.script.counts[Call.REGISTRY_ENSURE] == 0
    assert world.row().provider_id is None
    object_id = ensure_credential(world.services(), world.provider, key, pull)
    assert seen == [CredentialState.ACTIVE]
    assert world.row().provider_id == object_id
    assert world.objects() == [key.object_name] == [f"nebula-{world.fingerprint()}-1"]


def test_every_use_touches_the_row_and_is_told_once(world: Lending) -> None:
    world.start("first")
    world.clock.advance(HOUR)
    world.start("second")
    row = world.row()
    assert row.last_used_at == world.clock.now()
    assert row.created_at == world.clock.now() - HOUR
    assert len(world.told(DetailType.CREDENTIAL_CREATED)) == 1
    assert (row.username_hint, row.registry, row.sources) == ("c***", "registry.example.com", ("prod/default/pull",))


def test_ensure_touches_again_so_that_a_retirement_that_read_before_fails(world: Lending) -> None:
    key, pull = world.record()
    read_by_retirement = world.row()
    world.clock.advance(MINUTE)
    ensure_credential(world.services(), world.provider, key, pull)
    with pytest.raises(CredentialConflictError):
        world.credentials.save(read_by_retirement, read_by_retirement.model_copy(update={"note": "retiring"}))


def test_one_password_from_two_secrets_is_one_credential_with_two_sources(world: Lending) -> None:
    world.put_secret(name="other")
    world.start("first", "pull")
    world.start("second", "other")
    assert world.row().sources == ("prod/default/pull", "prod/default/other")
    assert len(world.objects()) == 1


def test_sources_are_bounded(world: Lending) -> None:
    world.record()
    _move(world, sources=tuple(f"prod/default/s{n}" for n in range(MAX_SOURCES)))
    world.record()
    assert len(world.row().sources) == MAX_SOURCES
    assert world.row().sources[-1] == "prod/default/pull"


@pytest.mark.parametrize("state", [CredentialState.RETIRING, CredentialState.RETIRED])
def test_a_row_that_is_being_retired_is_left_to_it(world: Lending, state: CredentialState) -> None:
    key, pull = world.record()
    _move(world, state=state)
    with pytest.raises(CredentialMovedError):
        ensure_credential(world.services(), world.provider, key, pull)
    assert world.objects() == [], "nothing is made for it"
    again, _ = world.record()
    assert again.generation == 2
    assert ensure_credential(world.services(), world.provider, again, pull)
    assert world.objects() == [f"nebula-{world.fingerprint()}-2"]


def test_a_row_past_its_maximum_age_is_followed_by_the_next_generation(world: Lending) -> None:
    key, pull = world.record()
    _move(world, aged_out=True)
    assert world.record()[0].generation == 2
    with pytest.raises(CredentialMovedError):
        ensure_credential(world.services(), world.provider, key, pull)


def test_a_row_that_retires_while_the_provider_answers_is_not_used(world: Lending) -> None:
    key, pull = world.record()
    world.provider.script.before_each(lambda call, _: _move(world, state=CredentialState.RETIRING))
    with pytest.raises(CredentialMovedError):
        ensure_credential(world.services(), world.provider, key, pull)


def test_a_key_without_a_row_is_not_made(world: Lending) -> None:
    key, pull = world.record()
    unknown = key.model_copy(update={"generation": 9})
    with pytest.raises(CredentialMovedError):
        ensure_credential(world.services(), world.provider, unknown, pull)
    assert world.objects() == []


def test_a_rollback_to_an_older_password_makes_its_row_active_again(world: Lending) -> None:
    old, _ = world.record(f"{PASSWORD}-old")
    _move(world, state=CredentialState.SUPERSEDED, superseded_at=world.clock.now(), note="put off")
    world.record(f"{PASSWORD}-new")
    again, _ = world.record(f"{PASSWORD}-old")
    row = world.credentials.get(again)
    assert again == old
    assert row is not None
    assert (row.state, row.superseded_at, row.note) == (CredentialState.ACTIVE, None, "")


def test_an_object_deleted_by_hand_is_made_again_under_the_same_name(world: Lending) -> None:
    key, pull = world.record()
    first = ensure_credential(world.services(), world.provider, key, pull)
    world.provider.remove(first)
    second = ensure_credential(world.services(), world.provider, key, pull)
    assert second != first
    assert (world.row().provider_id, world.objects()) == (second, [key.object_name])
    assert [told.reason for told in world.told(DetailType.CREDENTIAL_CREATED)] == [
        "first use",
        "made again: the object was not there any more",
    ]


def test_many_functions_at_once_make_one_row_and_one_object(world: Lending) -> None:
    pull = world.pull()
    start = threading.Barrier(6)
    ids: list[str] = []
    keys: list[CredentialKey] = []

    def use() -> None:
        start.wait()
        key = record_credential(world.services(), world.provider, pull)
        keys.append(key)
        ids.append(ensure_credential(world.services(), world.provider, key, pull))

    threads = [threading.Thread(target=use) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 6
    assert len(set(ids)) == len(set(keys)) == len(world.rows()) == len(world.objects()) == 1
    assert len(world.told(DetailType.CREDENTIAL_CREATED)) == 1


def test_an_empty_answer_is_an_error(world: Lending, monkeypatch: pytest.MonkeyPatch) -> None:
    key, pull = world.record()
    monkeypatch.setattr(world.provider, "ensure_registry_credential", lambda *_: "")
    with pytest.raises(ProviderUnavailableError, match="without an id"):
        ensure_credential(world.services(), world.provider, key, pull)
    assert world.row().provider_id is None


def test_a_failing_provider_leaves_the_row_for_retirement(world: Lending) -> None:
    key, pull = world.record()
    world.provider.script.fail(Call.REGISTRY_ENSURE, ProviderUnavailableError("gateway timeout"), after=True)
    with pytest.raises(ProviderUnavailableError):
        ensure_credential(world.services(), world.provider, key, pull)
    assert (world.states(), world.objects()) == ([CredentialState.ACTIVE], [key.object_name])


def test_a_bus_that_fails_does_not_stop_a_pod(world: Lending) -> None:
    world.publisher.fail_next(1)
    world.start()
    assert world.row().provider_id is not None
    assert any(message == "event not published" for _, message, _ in world.telemetry.lines)


def test_forgetting_reaches_the_provider(world: Lending, monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten: list[str] = []
    monkeypatch.setattr(world.provider, "forget_registry_credential", forgotten.append)
    key, _ = world.record()
    forget_credential(world.services(), world.provider, key)
    assert forgotten == [key.object_name]


class KeepsNone:
    """A provider without registry credentials."""

    name = "modal"


def test_a_provider_that_keeps_no_credentials_is_never_asked(world: Lending) -> None:
    pull = world.pull()
    provider: Provider = KeepsNone()  # type: ignore[assignment]
    with pytest.raises(RequestRefusedError, match="modal keeps no registry credentials"):
        record_credential(world.services(), provider, pull)
    assert world.rows() == []


def test_an_ecr_password_is_not_used_past_its_expiry() -> None:
    world = Lending()
    host = "123456789012.dkr.ecr.eu-central-1.amazonaws.com"
    world.api.secrets["default", "pull"] = pull_secret(docker_config((host, "AWS", PASSWORD)))
    found = find_pull_credential(world.clusters.get("prod"), pod("pull"), f"{host}/app:1").credential
    assert found is not None
    key = record_credential(world.services(), world.provider, found)
    assert world.row().expires_at == found.expires_at
    rewritten = found.model_copy(update={"expires_at": world.clock.now() + DAY})
    record_credential(world.services(), world.provider, rewritten)
    assert world.row().expires_at == found.expires_at, "the same password cannot become younger"
    world.clock.advance(12 * HOUR)
    with pytest.raises(CredentialExpiredError, match="prod/default/pull") as caught:
        record_credential(world.services(), world.provider, rewritten)
    assert PASSWORD not in str(caught.value)
    with pytest.raises(CredentialMovedError):
        ensure_credential(world.services(), world.provider, key, found)
    assert world.objects() == []


def test_accounts_are_told_apart_and_fit_a_key() -> None:
    world = Lending(account_id="team/one two")
    world.put_secret()
    key, _ = world.record()
    assert key.account == "team%2Fone%20two"
    assert CredentialKey.parse(str(key)) == key
    world.provider.account_id = None
    assert key_account(world.provider) == "default"
    assert world.record()[0].account == "default"
    assert len(world.rows()) == 2


def test_nothing_secret_is_left_anywhere(world: Lending) -> None:
    world.start()
    for canary in (PASSWORD, USER):
        assert canary not in world.everything_said()


def test_the_row_that_always_moves_is_told_and_not_tried_for_ever(
    world: Lending, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, pull = world.record()
    tries: list[int] = []

    def always_lost(previous: object, credential: object) -> None:
        tries.append(1)
        raise CredentialConflictError("moved")

    monkeypatch.setattr(world.credentials, "save", always_lost)
    with pytest.raises(CredentialConflictError):
        ensure_credential(world.services(), world.provider, key, pull)
    assert len(tries) == 10


def test_a_known_credential_is_written_once_a_use_and_not_twice(world: Lending) -> None:
    key, pull = world.record()
    ensure_credential(world.services(), world.provider, key, pull)
    world.clock.advance(MINUTE)
    before = world.row()
    world.record()
    assert world.row() == before
    ensure_credential(world.services(), world.provider, key, pull)
    assert world.row().last_used_at == world.clock.now()
