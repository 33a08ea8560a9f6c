"""Provision: ownership, the walk over interchangeable types, what a 403 means, unknown outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest
from nebula.providers.errors import (
    AuthenticationError,
    ImagePullError,
    InsufficientBalanceError,
    NoCapacityError,
    ProviderError,
    ProviderUnavailableError,
    QuotaExceededError,
    RateLimitedError,
    RequestRefusedError,
    UnsupportedAcceleratorError,
)
from nebula.providers.naming import instance_name
from nebula.providers.runpod.translate import MAX_NAME_LENGTH
from pydantic import SecretStr

from local.runpod.faults import Failure
from tests.support.runpod import NO_CAPACITY, NVL, PCIE, SXM, RunPodWorld, mark, request

FORBIDDEN = "forbidden"


def asked(world: RunPodWorld) -> list[str]:
    """The GPU ids of the creates made, in order."""
    return [body["gpu"]["id"] for body in world.calls("POST", "/v2/pods")]


def test_an_instance_carries_its_mark_and_is_found_by_it() -> None:
    world = RunPodWorld()
    made = world.provider.provision(request())
    assert made.mark == mark()
    found = world.another().find(mark())
    assert found is not None
    assert found.id == made.id
    assert found.mark == mark()
    assert made.instance_type == SXM
    assert made.cost_per_hour is not None


@pytest.mark.parametrize("other", [mark(2), mark(1, attempt=2), mark().model_copy(update={"installation": "other"})])
def test_another_mark_is_not_ours(other: object) -> None:
    world = RunPodWorld()
    world.provider.provision(request())
    assert world.provider.find(other) is None  # type: ignore[arg-type]


def test_a_foreign_pod_of_the_same_name_is_left_alone() -> None:
    world = RunPodWorld()
    foreign = world.account.create_pod(
        {"name": "default-web-00000001", "image": "x", "disk": 1, "gpu": {"id": SXM}, "env": {"NEBULA_CLAIM": "x"}}
    )
    assert world.provider.find(mark()) is None
    made = world.provider.provision(request())
    assert made.id != foreign.id
    found = world.provider.find(mark())
    assert found is not None
    assert found.id == made.id
    listed = {one.id: one.mark for one in world.provider.list_instances().instances}
    assert listed == {foreign.id: None, made.id: mark()}


@pytest.mark.parametrize("length", [190, 191, 192, 316])
def test_long_names_are_shortened_stay_apart_and_are_found(length: int) -> None:
    """``length`` is that of ``<namespace>-<pod>-<8 hex>`` unshortened; Kubernetes allows 326."""
    world = RunPodWorld()
    namespace = "n" * 63
    stem = "p" * (length - len(namespace) - 10)
    marks = [mark(0x11111111 << 96), mark(0x22222222 << 96)]
    for one in marks:
        name = instance_name(namespace, stem, one.claim_id, world.provider.capabilities.max_name_length)
        world.provider.provision(request(of=one, name=name))
    names = [body["name"] for body in world.calls("POST", "/v2/pods")]
    assert len(set(names)) == 2
    assert [len(name) for name in names] == [min(length, MAX_NAME_LENGTH)] * 2
    assert names[0].endswith("-11111111")
    assert [found.mark for found in (world.provider.find(one) for one in marks) if found is not None] == marks


def test_a_name_over_the_limit_is_not_sent() -> None:
    world = RunPodWorld()
    with pytest.raises(RequestRefusedError, match="192"):
        world.provider.provision(request(name="n" * 192))
    assert world.provider.capabilities.max_name_length == 191
    assert world.count("POST") == 0


def test_types_are_walked_in_order_until_one_is_had() -> None:
    world = RunPodWorld()
    world.account.market.set_stock(PCIE, 0)
    world.account.market.set_stock(NVL, 0)
    made = world.provider.provision(request(types=(PCIE, NVL, SXM)))
    assert made.instance_type == SXM
    assert asked(world) == [PCIE, NVL, SXM]


def test_the_walk_ends_at_the_first_that_is_had() -> None:
    world = RunPodWorld()
    assert world.provider.provision(request(types=(PCIE, NVL, SXM))).instance_type == PCIE
    assert asked(world) == [PCIE]


def test_all_short_is_one_error_with_a_line_each() -> None:
    world = RunPodWorld()
    world.account.market.set_stock(None, 0)
    with pytest.raises(NoCapacityError) as caught:
        world.provider.provision(request(types=(PCIE, NVL, SXM)))
    assert [line.split(":")[0] for line in caught.value.failures] == [PCIE, NVL, SXM]
    assert all(NO_CAPACITY in line for line in caught.value.failures)
    assert "3 types" in str(caught.value)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([(400, NO_CAPACITY), (400, "gpu type unknown")], NoCapacityError),
        ([(400, "gpu type unknown"), (400, NO_CAPACITY)], NoCapacityError),
        ([(400, "GPU quota exceeded"), (403, "pool closed")], QuotaExceededError),
        ([(400, "some rule"), (400, "gpu type unknown")], UnsupportedAcceleratorError),
        ([(400, "some rule"), (400, "some rule")], RequestRefusedError),
        ([(400, "some rule"), (400, NO_CAPACITY)], NoCapacityError),
    ],
)
def test_mixed_refusals_take_the_one_that_frees_soonest(
    answers: Sequence[tuple[int, str]], expected: type[ProviderError]
) -> None:
    world = RunPodWorld()
    for status, detail in answers:
        world.fail_create(status, detail)
    with pytest.raises(ProviderError) as caught:
        world.provider.provision(request(types=(PCIE, NVL)))
    assert type(caught.value) is expected
    assert len(caught.value.failures) == 2


@pytest.mark.parametrize(
    ("status", "detail", "expected"),
    [
        (401, "missing bearer token", AuthenticationError),
        (402, "", InsufficientBalanceError),
        (429, "rate limit exceeded", RateLimitedError),
        (500, "", ProviderUnavailableError),
        (422, "image not available", ImagePullError),
    ],
)
def test_what_holds_for_every_type_ends_the_walk(status: int, detail: str, expected: type[ProviderError]) -> None:
    world = RunPodWorld()
    world.fail_create(400, NO_CAPACITY)
    world.fail_create(status, detail)
    with pytest.raises(expected) as caught:
        world.provider.provision(request(types=(PCIE, NVL, SXM)))
    assert asked(world) == [PCIE, NVL]
    assert [line.split(":")[0] for line in caught.value.failures] == [PCIE, NVL]


def test_the_walk_keeps_within_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    world = RunPodWorld()
    world.account.market.set_stock(None, 0)
    handle = world.simulator.handle

    def slow(method: str, *rest: object) -> object:
        world.pass_time(25 if method == "POST" else 0)
        return handle(method, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(world.simulator, "handle", slow)
    world.provider._monotonic = world.seconds
    with pytest.raises(NoCapacityError) as caught:
        world.provider.provision(request(types=(PCIE, NVL, SXM)))
    assert asked(world) == [PCIE, NVL]
    assert caught.value.failures[-1] == f"{SXM}: not tried, no time left"
    assert world.provider.capabilities.provision_timeout < timedelta(seconds=60)


def test_a_candidate_without_types_is_unsupported() -> None:
    with pytest.raises(UnsupportedAcceleratorError):
        RunPodWorld().provider.provision(request(types=()))


def test_a_403_that_tells_nothing_is_about_the_pool_once_and_about_the_key_twice() -> None:
    world = RunPodWorld()
    world.fail_create(403, FORBIDDEN, times=3)
    with pytest.raises(UnsupportedAcceleratorError):
        world.provider.provision(request(types=(PCIE,)))
    with pytest.raises(UnsupportedAcceleratorError):
        world.provider.provision(request(types=(PCIE,)))
    with pytest.raises(AuthenticationError, match="second pool"):
        world.provider.provision(request(types=(NVL,)))


def test_the_second_pool_may_come_within_one_walk() -> None:
    world = RunPodWorld()
    world.fail_create(403, FORBIDDEN, times=2)
    with pytest.raises(AuthenticationError):
        world.provider.provision(request(types=(PCIE, NVL, SXM)))
    assert asked(world) == [PCIE, NVL]


def test_a_success_between_clears_the_suspicion() -> None:
    world = RunPodWorld()
    world.fail_create(403, FORBIDDEN)
    assert world.provider.provision(request(types=(PCIE, NVL))).instance_type == NVL
    world.fail_create(403, FORBIDDEN)
    with pytest.raises(UnsupportedAcceleratorError):
        world.provider.provision(request(of=mark(2), types=(SXM,)))


def test_an_old_suspicion_is_forgotten() -> None:
    world = RunPodWorld()
    world.fail_create(403, FORBIDDEN, times=2)
    with pytest.raises(UnsupportedAcceleratorError):
        world.provider.provision(request(types=(PCIE,)))
    world.pass_time(16 * 60)
    with pytest.raises(UnsupportedAcceleratorError):
        world.provider.provision(request(types=(NVL,)))


@pytest.mark.parametrize("drop", [True, False])
def test_a_create_whose_answer_is_lost_is_sent_once_and_found_by_mark(drop: bool) -> None:
    world = RunPodWorld()
    world.simulator.fail(Failure(500, method="POST", after=True, drop=drop))
    with pytest.raises(ProviderUnavailableError):
        world.provider.provision(request())
    assert world.count("POST") == 1
    found = world.provider.find(mark())
    assert found is not None
    assert found.name == "default-web-00000001"


@pytest.mark.parametrize("body", ["", "{}", '{"id": ""}', '{"id": 7}', '{"id": null}', "[]", "null", "<html>", "{"])
def test_a_201_without_an_id_is_unknown_and_the_pod_is_found(body: str) -> None:
    world = RunPodWorld()
    world.simulator.fail(Failure(201, method="POST", path="/v2/pods", after=True, raw=body))
    with pytest.raises(ProviderUnavailableError):
        world.provider.provision(request())
    assert world.provider.find(mark()) is not None


def test_a_failed_create_forgets_the_credential_it_used() -> None:
    world = RunPodWorld()
    made = world.provider.ensure_registry_credential("nebula-x-1", SecretStr("user"), SecretStr("word"))
    world.account.registries.delete(made)
    with pytest.raises(ProviderUnavailableError):
        world.provider.provision(request(registry=made))
    again = world.provider.ensure_registry_credential("nebula-x-1", SecretStr("user"), SecretStr("word"))
    assert again != made
    assert world.provider.provision(request(registry=again)).id


def test_no_secret_of_the_pod_is_in_the_error() -> None:
    world = RunPodWorld()
    world.fail_create(400, "bad value s3cr3t-token in env")
    with pytest.raises(ProviderError) as caught:
        world.provider.provision(request(env={"TOKEN": "s3cr3t-token"}))
    assert "s3cr3t" not in str(caught.value) + repr(caught.value) + "".join(caught.value.failures)
