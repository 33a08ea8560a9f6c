"""Registry credentials: found or made by name, never None, never anonymous."""

from __future__ import annotations

from typing import Any

import pytest
from nebula.providers.base import LogSource, Provider, RegistryCredentials
from nebula.providers.errors import (
    AuthenticationError,
    CredentialInUseError,
    InvalidWorkloadError,
    ProviderError,
    ProviderUnavailableError,
    RateLimitedError,
    RequestRefusedError,
)
from pydantic import SecretStr

from local.runpod.faults import Failure
from tests.support.runpod import RunPodWorld, request

USER, WORD = SecretStr("acme-robot"), SecretStr("s3cr3t-word")
NAME = "nebula-0123456789abcdef-1"
ROUTE = "/v2/registries"


def ensure(world: RunPodWorld) -> str:
    return world.provider.ensure_registry_credential(NAME, USER, WORD)


def test_the_provider_has_every_ability() -> None:
    provider = RunPodWorld().provider
    assert isinstance(provider, Provider)
    assert isinstance(provider, RegistryCredentials)
    assert isinstance(provider, LogSource)


def test_a_credential_is_made_once() -> None:
    world = RunPodWorld()
    made = ensure(world)
    assert ensure(world) == made
    assert world.another().ensure_registry_credential(NAME, USER, WORD) == made
    assert world.count("POST", ROUTE) == 1
    assert world.calls("POST", ROUTE) == [{"name": NAME, "username": "acme-robot", "password": "s3cr3t-word"}]


def test_the_id_is_kept_until_it_is_forgotten() -> None:
    world = RunPodWorld()
    ensure(world)
    ensure(world)
    assert world.count("GET", ROUTE) == 1
    world.provider.forget_registry_credential(NAME)
    ensure(world)
    assert world.count("GET", ROUTE) == 2


@pytest.mark.parametrize(
    "failure", [Failure(400, "name taken"), Failure(409, "duplicate"), Failure(500), Failure(drop=True), Failure(429)]
)
def test_a_failed_create_takes_what_stands_under_the_name(failure: Failure) -> None:
    world = RunPodWorld()
    failure.method, failure.path, failure.after = "POST", ROUTE, True
    world.simulator.fail(failure)
    assert ensure(world) == world.account.registries.list()[0]["id"]
    assert world.count("POST", ROUTE) == 1


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (Failure(400, "username is not valid"), RequestRefusedError),
        (Failure(422, "Request validation failed."), RequestRefusedError),
        (Failure(401), AuthenticationError),
        (Failure(403, "access denied"), AuthenticationError),
        (Failure(429), RateLimitedError),
        (Failure(500), ProviderUnavailableError),
        (Failure(drop=True), ProviderUnavailableError),
        (Failure(201, raw="{}"), ProviderUnavailableError),
        (Failure(201, raw=""), ProviderUnavailableError),
        (Failure(201, raw='{"id": ""}'), ProviderUnavailableError),
        (Failure(201, raw='{"id": null}'), ProviderUnavailableError),
        (Failure(201, raw="null"), ProviderUnavailableError),
    ],
    ids=lambda one: str(getattr(one, "raw", None) or getattr(one, "status", one)),
)
def test_else_the_creates_error_is_raised(failure: Failure, expected: type[ProviderError]) -> None:
    world = RunPodWorld()
    failure.method, failure.path = "POST", ROUTE
    world.simulator.fail(failure)
    with pytest.raises(expected):
        ensure(world)
    assert world.account.registries.list() == []


def test_the_creates_error_survives_a_list_that_fails_too(monkeypatch: pytest.MonkeyPatch) -> None:
    world = RunPodWorld()
    original = world.simulator.handle

    def handle(method: str, path: str, *rest: Any) -> Any:
        if method == "POST":
            world.simulator.fail(Failure(429, method="GET", path=ROUTE))
            world.simulator.fail(Failure(400, "username is not valid", method="POST"))
        return original(method, path, *rest)

    monkeypatch.setattr(world.simulator, "handle", handle)
    with pytest.raises(RequestRefusedError, match="username"):
        ensure(world)


@pytest.mark.parametrize(
    ("name", "user", "word", "missing"),
    [("", "u", "p", "name"), (NAME, "", "p", "user"), (NAME, "u", "", "password"), (NAME, "", "", "user")],
)
def test_a_missing_part_is_an_error(name: str, user: str, word: str, missing: str) -> None:
    world = RunPodWorld()
    with pytest.raises(InvalidWorkloadError, match=missing):
        world.provider.ensure_registry_credential(name, SecretStr(user), SecretStr(word))
    assert world.account.requests == []


def test_an_entry_without_an_id_is_not_taken() -> None:
    world = RunPodWorld()
    raw = f'{{"registries": [{{"id": "", "name": "{NAME}"}}, {{"name": "{NAME}"}}, null]}}'
    world.simulator.fail(Failure(200, method="GET", path=ROUTE, raw=raw))
    made = ensure(world)
    assert made == world.account.registries.list()[0]["id"]


@pytest.mark.parametrize("raw", ["", "null", "[]", "{}", '{"registries": null}', "<html>"])
def test_a_list_that_cannot_be_read_is_not_an_empty_one(raw: str) -> None:
    world = RunPodWorld()
    world.simulator.fail(Failure(200, method="GET", path=ROUTE, raw=raw, times=2))
    with pytest.raises(ProviderUnavailableError):
        ensure(world)
    with pytest.raises(ProviderUnavailableError):
        world.provider.list_registry_credentials()
    assert world.count("POST") == 0


def test_an_unfinished_list_is_not_taken_for_absence() -> None:
    world = RunPodWorld()
    page = '{"registries": [], "pagination": {"hasNextPage": true, "nextCursor": null}}'
    world.simulator.fail(Failure(200, method="GET", path=ROUTE, raw=page, times=2))
    with pytest.raises(ProviderUnavailableError):
        ensure(world)
    with pytest.raises(ProviderUnavailableError):
        world.provider.list_registry_credentials()
    assert world.count("POST") == 0


def test_pages_are_followed_should_there_be_any() -> None:
    world = RunPodWorld()
    page = '{"registries": [{"id": "a", "name": "x"}], "pagination": {"hasNextPage": true, "nextCursor": "n"}}'
    world.simulator.fail(Failure(200, method="GET", path=ROUTE, raw=page))
    ours = world.account.registries.create({"name": NAME, "username": "u", "password": "p"})
    assert ensure(world) == ours["id"]
    assert world.count("POST") == 0


def test_foreign_credentials_are_listed_too() -> None:
    world = RunPodWorld()
    world.account.registries.create({"name": "theirs", "username": "u", "password": "p"})
    made = ensure(world)
    assert [(one.name, one.id) for one in world.provider.list_registry_credentials()][1] == (NAME, made)


def test_one_in_use_is_not_deleted() -> None:
    world = RunPodWorld()
    made = ensure(world)
    pod = world.provider.provision(request(registry=made))
    with pytest.raises(CredentialInUseError):
        world.provider.delete_registry_credential(made)
    world.provider.terminate(pod.id)
    world.provider.delete_registry_credential(made)
    assert world.account.registries.list() == []


def test_deleting_what_is_gone_succeeds_and_a_strangers_404_does_not() -> None:
    world = RunPodWorld()
    world.provider.delete_registry_credential("never-was")
    world.simulator.fail(Failure(404, method="DELETE", raw="<html>"))
    with pytest.raises(ProviderUnavailableError):
        world.provider.delete_registry_credential("never-was")


def test_a_deleted_one_is_made_anew() -> None:
    world = RunPodWorld()
    made = ensure(world)
    world.provider.delete_registry_credential(made)
    assert ensure(world) != made


def test_no_secret_is_in_an_error() -> None:
    world = RunPodWorld()
    world.simulator.fail(Failure(400, "cannot log in as acme-robot with s3cr3t-word", method="POST", path=ROUTE))
    with pytest.raises(RequestRefusedError) as caught:
        ensure(world)
    assert "s3cr3t" not in str(caught.value)
    assert "acme-robot" not in str(caught.value)


def test_a_private_image_starts_with_its_credential_only() -> None:
    world = RunPodWorld()
    world.account.images.private = {"ghcr.io/acme/secret:1": ("acme-robot", "s3cr3t-word")}
    bare = world.provider.provision(request(image="ghcr.io/acme/secret:1"))
    lent = world.provider.provision(request(image="ghcr.io/acme/secret:1", registry=ensure(world)))
    world.pass_time(60)
    states = [world.account.pods[one.id].status(world.clock.now()) for one in (bare, lent)]
    assert states == ["STARTING", "RUNNING"]
    assert any("pull access denied" in line for line in world.provider.logs(bare.id))
