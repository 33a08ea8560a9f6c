"""The client's manners: the key, bounds, repetitions, rate headers."""

from __future__ import annotations

import pytest
from nebula.clock import ManualClock
from nebula.observability import MemoryTelemetry
from nebula.providers.errors import ProviderError, ProviderUnavailableError, ProviderUnconfiguredError, RateLimitedError
from nebula.providers.runpod import build
from nebula.providers.runpod.client import DEFAULT_BASE_URL
from nebula.providers.runpod.wire import decode
from pydantic import SecretStr

from local.runpod.faults import Failure, Quota
from tests.support.runpod import KEY, START, RunPodWorld, mark, request


@pytest.mark.parametrize("key", ["", "   ", "\n", "rpa key", "rpa\nkey", "rpa\x00", "schlüssel", "rpa\u200b"])
def test_a_key_that_cannot_be_one_leaves_the_provider_unconfigured(key: str) -> None:
    with pytest.raises(ProviderUnconfiguredError) as caught:
        build(api_key=SecretStr(key), clock=ManualClock(START), telemetry=MemoryTelemetry())
    assert "key" in str(caught.value)
    assert key.strip() == "" or key not in str(caught.value)


def test_the_key_goes_out_as_bearer_and_stays_out_of_everything_else() -> None:
    world = RunPodWorld()
    world.account.keys = frozenset({KEY})
    made = world.provider.provision(request())
    assert world.provider.get(made.id) is not None
    world.simulator.fail(Failure(500, f"key {KEY} is odd", method="POST"))
    with pytest.raises(ProviderUnavailableError) as caught:
        world.provider.provision(request(of=mark(2)))
    assert KEY not in str(caught.value)
    assert KEY not in repr(vars(world.provider)) + repr(vars(world.provider._client))
    assert len(world.provider.key_fingerprint) == 12
    assert world.provider.key_fingerprint not in KEY


@pytest.mark.parametrize("suffix", ["", "/", "/v2", "/v2/"])
def test_the_base_url_may_name_the_version(suffix: str) -> None:
    clock = ManualClock(START)
    provider = build(api_key=SecretStr("k"), base_url=f"https://x{suffix}", clock=clock, telemetry=MemoryTelemetry())
    assert provider._client._base == "https://x"
    assert DEFAULT_BASE_URL == "https://api.runpod.io"


@pytest.mark.parametrize("failure", [Failure(500), Failure(502), Failure(503), Failure(504), Failure(drop=True)])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_reads_and_deletes_are_repeated_in_a_small_bound(method: str, failure: Failure) -> None:
    world = RunPodWorld()
    made = world.provider.provision(request())
    call = {"GET": world.provider.get, "DELETE": world.provider._client.delete_pod}[method]
    failure = Failure(**{**vars(failure), "method": method, "times": 2})
    world.simulator.fail(failure)
    call(made.id)
    assert world.count(method) == 3
    assert world.slept == [0.2, 0.4]
    world.simulator.fail(Failure(**{**vars(failure), "times": 3}))
    with pytest.raises(ProviderUnavailableError):
        call(made.id)
    assert world.count(method) == 6


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 429])
def test_an_answer_that_stays_the_same_is_not_asked_for_again(status: int) -> None:
    world = RunPodWorld()
    world.simulator.fail(Failure(status, "no", method="GET", path="/v2/pods"))
    with pytest.raises(ProviderError):
        world.provider.list_instances()
    assert world.count("GET") == 1


@pytest.mark.parametrize("failure", [Failure(500), Failure(503), Failure(429), Failure(drop=True)])
def test_a_create_is_sent_once(failure: Failure) -> None:
    world = RunPodWorld()
    world.simulator.fail(Failure(**{**vars(failure), "method": "POST"}))
    with pytest.raises(ProviderError):
        world.provider.provision(request())
    assert world.count("POST") == 1
    assert world.slept == []


def test_an_answer_over_the_bound_is_refused_whole() -> None:
    world = RunPodWorld()
    world.simulator.fail(Failure(200, path="/v2/pods/x", raw=" " * (8 * 1024 * 1024 + 1)))
    with pytest.raises(ProviderUnavailableError, match="more than 8388608 bytes"):
        world.provider.get("x")
    assert world.count("GET") == 1


def test_an_account_whose_smallest_pages_are_too_large_is_unknown_not_empty() -> None:
    world = RunPodWorld()
    world.simulator.fail(Failure(200, path="/v2/pods", raw=" " * (8 * 1024 * 1024 + 1), times=9))
    with pytest.raises(ProviderUnavailableError, match="bytes"):
        world.provider.list_instances()
    assert [one.query["limit"] for one in world.account.requests] == ["200", "20", "2"]


@pytest.mark.parametrize("path", ["/v2/registries", "/v2/catalog/gpus"])
def test_other_lists_are_bounded_too(path: str) -> None:
    world = RunPodWorld()
    world.simulator.fail(Failure(200, path=path, raw=" " * (8 * 1024 * 1024 + 1)))
    if path.endswith("registries"):
        with pytest.raises(ProviderUnavailableError):
            world.provider.list_registry_credentials()
    else:
        assert world.provider.offerings().source == "catalog"


def test_a_quota_nearly_used_up_is_told_and_a_throttle_too() -> None:
    world = RunPodWorld()
    world.account.faults.quota = Quota(10)
    for _ in range(7):
        world.provider.list_instances()
    assert world.telemetry.metrics == []
    for _ in range(3):
        world.provider.list_instances()
    assert [round(value) for name, value, _ in world.telemetry.metrics if name == "ProviderRateLimitUsed"] == [
        80,
        90,
        100,
    ]
    with pytest.raises(RateLimitedError) as caught:
        world.provider.list_instances()
    assert caught.value.retry_after.total_seconds() == 60
    assert world.telemetry.total("ProviderThrottled") == 1
    assert {tuple(dimensions) for _, _, dimensions in world.telemetry.metrics} == {("provider",)}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (rb'"\ud800"', "\ufffd"),
        (rb'"\uDFFFx"', "\ufffdx"),
        (rb'"\ud83d\ude00"', "\U0001f600"),
        (rb'"\ud83d\ud83d\ude00"', "\ufffd\U0001f600"),
        (rb'"\\ud800"', "\\ud800"),
        (rb'"\\\ud800"', "\\\ufffd"),
        (rb'"\u00e9"', "\u00e9"),
    ],
)
def test_half_a_character_does_not_come_through(body: bytes, expected: str) -> None:
    assert decode(body) == expected


@pytest.mark.parametrize("body", [b"", b"\xff", b"{", b"NaN", b"[" * 100_000, b"1" * 5000, '"é"'.encode("utf-16")])
def test_what_is_no_json_is_a_value_error(body: bytes) -> None:
    with pytest.raises(ValueError):
        decode(body)


@pytest.mark.parametrize(
    "header",
    ["", "rubbish", '"minute";r=;t=1', '"minute";t=1', "a" * 100_000, '"m";r=1' * 9999, '"minute";r=99999999999'],
)
def test_odd_rate_headers_are_passed_over(header: str) -> None:
    world = RunPodWorld()
    headers = {"RateLimit": header, "RateLimit-Policy": header}
    world.simulator.fail(Failure(200, path="/v2/pods", raw='{"pods": []}', headers=headers))
    assert world.provider.list_instances().instances == ()
    assert world.telemetry.metrics == []
