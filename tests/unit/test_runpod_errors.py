"""The one error table: each status, and each literal text that is known of RunPod."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from nebula.http import Answer
from nebula.providers.errors import (
    AuthenticationError,
    BlockScope,
    ImagePullError,
    InsufficientBalanceError,
    NoCapacityError,
    ProviderError,
    ProviderUnavailableError,
    RateLimitedError,
    RequestRefusedError,
    UnsupportedAcceleratorError,
)
from nebula.providers.runpod.errors import (
    ContractError,
    Route,
    classify,
)
from pydantic import SecretStr

from tests.support.runpod import NO_CAPACITY, START, SXM, RunPodWorld, request
from tests.support.runpod_table import CREATE


def answer(status: int, detail: str = "", **members: object) -> Answer:
    content = {"title": "Some title", "status": status, "detail": detail} | members
    return Answer(status, body=json.dumps(content).encode())


def judged(given: Answer, route: Route = Route.CREATE_POD, secrets: tuple[SecretStr, ...] = ()) -> ProviderError:
    return classify(given, route=route, now=START, secrets=secrets)


@pytest.mark.parametrize(("status", "detail", "expected"), CREATE)
def test_each_answer_of_a_create_has_one_meaning(status: int, detail: str, expected: type[ProviderError]) -> None:
    error = judged(answer(status, detail))
    assert type(error) is expected
    assert error.code == str(status)
    assert detail[:100] in str(error)


@pytest.mark.parametrize(("status", "detail", "expected"), CREATE)
def test_the_provider_raises_it_over_the_wire(status: int, detail: str, expected: type[ProviderError]) -> None:
    world = RunPodWorld()
    world.fail_create(status, detail)
    with pytest.raises(expected) as caught:
        world.provider.provision(request())
    assert type(caught.value) is expected
    assert len(caught.value.failures) == 1
    assert caught.value.failures[0].startswith(f"{SXM}: ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("image not available: there are no longer any instances available", ImagePullError),
        ("registry error; no instances currently available", ImagePullError),
        ("insufficient funds, no instances available", InsufficientBalanceError),
    ],
)
def test_what_is_said_first_in_the_table_wins(text: str, expected: type[ProviderError]) -> None:
    assert type(judged(answer(400, text))) is expected


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        (["$: additional properties 'bogus' not allowed"], ContractError),
        (["$: missing property 'image'"], ContractError),
        (["$.cloud: value must be one of 'SECURE', 'COMMUNITY'"], ContractError),
        (["$.gpu.id: value must be one of 'A', 'B'"], UnsupportedAcceleratorError),
        (["/gpu/id: value must be one of 'A', 'B'"], UnsupportedAcceleratorError),
    ],
)
def test_a_schema_violation_is_ours_unless_it_is_about_the_gpu_id(
    errors: list[str], expected: type[ProviderError]
) -> None:
    error = judged(answer(422, "Request validation failed.", errors=errors))
    assert type(error) is expected
    assert errors[0] in str(error)


def test_a_schema_violation_alarms() -> None:
    world = RunPodWorld()
    world.fail_create(422, "Request validation failed.", errors=["$: missing property 'dataCenter'"])
    with pytest.raises(RequestRefusedError):
        world.provider.provision(request())
    assert world.telemetry.total("ProviderContractBroken") == 1
    assert [level for level, _, _ in world.telemetry.lines] == ["error"]


@pytest.mark.parametrize("status", [400, 404, 409, 422])
@pytest.mark.parametrize("body", [b"", b"<html>nginx</html>", b"no such image", b'"text"', b"[1]", b"\xff\xfe", b"{"])
def test_an_answer_that_is_not_runpods_refuses_nothing(status: int, body: bytes) -> None:
    assert type(judged(Answer(status, body=body))) is ProviderUnavailableError


@pytest.mark.parametrize("status", [404, 409])
def test_a_strangers_json_refuses_nothing(status: int) -> None:
    given = Answer(status, body=b'{"message": "Not Found"}')
    assert type(judged(given)) is ProviderUnavailableError


def test_a_page_with_403_is_no_refusal() -> None:
    assert type(judged(Answer(403, body=b"<html>blocked</html>"))) is ProviderUnavailableError


@pytest.mark.parametrize("member", ["detail", "error", "message"])
def test_the_text_is_found_under_each_name_that_was_seen(member: str) -> None:
    given = Answer(400, body=json.dumps({member: NO_CAPACITY}).encode())
    assert type(judged(given)) is NoCapacityError


def test_a_nested_error_object_is_read() -> None:
    given = Answer(400, body=json.dumps({"error": {"message": NO_CAPACITY}}).encode())
    assert type(judged(given)) is NoCapacityError


@pytest.mark.parametrize("status", [301, 302, 304, 100, 599, 600])
def test_redirects_and_odd_statuses_are_unknown(status: int) -> None:
    assert type(judged(answer(status))) is ProviderUnavailableError


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, ProviderUnavailableError),
        (401, AuthenticationError),
        (402, InsufficientBalanceError),
        (403, AuthenticationError),
        (404, ProviderUnavailableError),
        (409, ProviderUnavailableError),
        (422, ProviderUnavailableError),
        (429, RateLimitedError),
        (500, ProviderUnavailableError),
    ],
)
def test_other_routes_know_no_refusal(status: int, expected: type[ProviderError]) -> None:
    assert type(judged(answer(status, NO_CAPACITY), Route.OTHER)) is expected


def test_a_refused_registry_credential_is_refused_not_unknown() -> None:
    assert type(judged(answer(400, "name taken"), Route.CREATE_REGISTRY)) is RequestRefusedError
    assert type(judged(answer(500, "oops"), Route.CREATE_REGISTRY)) is ProviderUnavailableError


def test_each_class_blocks_what_the_design_says() -> None:
    scopes = {
        type(judged(answer(status, text))).__name__: judged(answer(status, text)).blocks for status, text, _ in CREATE
    }
    assert scopes == {
        "NoCapacityError": BlockScope.CANDIDATE,
        "QuotaExceededError": BlockScope.CANDIDATE,
        "UnsupportedAcceleratorError": BlockScope.ACCELERATOR,
        "UndecidedForbiddenError": BlockScope.ACCELERATOR,
        "AuthenticationError": BlockScope.PROVIDER,
        "InsufficientBalanceError": BlockScope.PROVIDER,
        "RateLimitedError": BlockScope.NOTHING,
        "RequestRefusedError": BlockScope.CLAIM,
        "ContractError": BlockScope.CLAIM,
        "ImagePullError": BlockScope.NOTHING,
        "InvalidWorkloadError": BlockScope.NOTHING,
        "ProviderUnavailableError": BlockScope.NOTHING,
        "CredentialMissingError": BlockScope.NOTHING,
    }  # fmt: skip


def test_texts_are_cut_and_free_of_what_was_sent() -> None:
    secrets = (SecretStr("hunter22"), SecretStr("-----KEY-----\nMIIEpAIBAAK\n-----END-----"))
    error = judged(answer(400, f"bad env hunter22 and MIIEpAIBAAK {'x' * 5000}"), secrets=secrets)
    assert "hunter22" not in str(error)
    assert "MIIEpAIBAAK" not in str(error)
    assert len(str(error)) < 600


def test_a_secret_cut_in_half_does_not_remain() -> None:
    secret = SecretStr("s3cr3t-value-that-is-long")
    error = judged(answer(400, "y" * 505 + secret.get_secret_value()), secrets=(secret,))
    assert "s3cr" not in str(error)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "12"}, 12),
        ({"retry-after": "0"}, 1),
        ({"Retry-After": "Sun, 01 Nov 2026 12:01:30 GMT"}, 90),
        ({"Retry-After": "Sun, 01 Nov 2026 11:00:00 GMT"}, 1),
        ({"Retry-After": "99999999999"}, 86400),
        ({"Retry-After": "soon"}, 30),
        ({}, 30),
        ({"RateLimit": '"minute";r=0;t=12, "hour";r=2800;t=1812'}, 12),
        ({"RateLimit": '"minute";r=0;t=12, "hour";r=0;t=1812, "day";r=5;t=45012'}, 1812),
        ({"RateLimit": '"minute";r=0;t=12', "Retry-After": "3"}, 3),
        ({"RateLimit": "rubbish"}, 30),
    ],
)
def test_a_throttle_says_how_long(headers: dict[str, str], seconds: int) -> None:
    world = RunPodWorld()
    world.fail_create(429, "rate limit exceeded for the minute window", headers=headers)
    with pytest.raises(RateLimitedError) as caught:
        world.provider.provision(request())
    assert caught.value.retry_after == timedelta(seconds=seconds)
    assert world.telemetry.total("ProviderThrottled") == 1
