"""Field reports X13 to X15: answers of RunPod that are not what they look like (docs/field-reports.md)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from nebula.credentials.policy import RetirementPolicies
from nebula.domain.claim import Phase
from nebula.domain.credential import CredentialState
from nebula.domain.instance import InstanceState
from nebula.providers.errors import (
    AuthenticationError,
    NoCapacityError,
    RateLimitedError,
)
from nebula.providers.runpod.instances import to_instance
from nebula.workflows.retire import retire_credentials

from local.runpod.faults import Failure, Quota
from tests.support.lending import POLICY
from tests.support.runpod import NO_CAPACITY, RunPodWorld, mark, request
from tests.support.runpod_installation import RunPodInstallation, put_login, with_image
from tests.support.scenarios import up
from tests.support.world import CLUSTER, running, until_true

GRAPHQL = '{"errors": [{"message": "pod not found to terminate"}], "data": null}'


def answers(method: str, path: str, raw: str = GRAPHQL, status: int = 200, times: int = 1000) -> Failure:
    """RunPod answers so instead of doing anything."""
    return Failure(status, method=method, path=path, raw=raw, times=times)


def test_x13_a_200_with_errors_is_no_created_pod() -> None:
    world = RunPodInstallation()
    world.simulator.fail(answers("POST", "/v2/pods", times=1))
    world.create_pod()
    world.pump()
    assert world.claim().phase is Phase.PROVISIONING
    assert world.claim().instance_id is None
    until_true(world, lambda: running(world.pod()))
    assert world.alive() == [world.claim().instance_id]


def test_x13_a_200_with_errors_is_no_list_without_pods() -> None:
    world = RunPodInstallation()
    made = up(world)
    world.simulator.fail(answers("GET", "/v2/pods"))
    world.run(4)
    assert running(world.pod())
    assert world.claim().phase is Phase.RELEASED
    assert world.alive() == [made]


def test_x13_a_200_with_errors_for_a_delete_is_believed_only_once_the_pod_is_gone() -> None:
    world = RunPodInstallation()
    made = up(world)
    world.simulator.fail(answers("DELETE", "/v2/pods/.*", times=2))
    world.delete_pod()
    world.pump()
    world.tick()
    assert world.alive() == [made]
    assert world.claim().phase is Phase.TERMINATING
    until_true(world, lambda: world.alive() == [], minutes=5)
    until_true(world, lambda: world.pod() is None, minutes=2)


@pytest.mark.parametrize("status", [401, 403])
def test_x13_a_refused_key_says_nothing_of_what_runs(status: int) -> None:
    world = RunPodInstallation()
    made = up(world)
    world.simulator.fail(Failure(status, "Unauthorized", times=1000))
    with pytest.raises(AuthenticationError):
        world.providers.get("runpod").list_instances()
    world.run(4)
    assert running(world.pod())
    assert world.alive() == [made]


def test_x14_a_credential_whose_pod_was_never_made_has_its_row_and_is_retired_by_it() -> None:
    world = RunPodInstallation()
    put_login(world)
    world.simulator.fail(Failure(400, NO_CAPACITY, method="POST", path="/v2/pods", times=1000))
    world.create_pod(**with_image("registry.example.com/train:1", "login"))
    world.pump()
    (made,) = world.account.registries.list()
    (row,) = world.credentials.all()
    assert (row.provider_id, row.state) == (made["id"], CredentialState.ACTIVE)
    assert made["name"] == row.key.object_name
    world.delete_pod()
    world.pump()
    world.run(1)
    for _ in range(3):
        world.clock.advance(timedelta(days=4))
        retire_credentials(world.services("credential_retirement"), RetirementPolicies(default=POLICY))
    assert world.account.registries.list() == []


def test_x14_a_credential_whose_answer_was_lost_is_under_its_row_as_well() -> None:
    world = RunPodInstallation()
    put_login(world)
    world.simulator.fail(Failure(method="POST", path="/v2/registries", after=True, drop=True))
    world.create_pod(**with_image("registry.example.com/train:1", "login"))
    world.pump()
    until_true(world, lambda: running(world.pod()))
    (made,) = world.account.registries.list()
    (row,) = world.credentials.all()
    assert row.provider_id == made["id"]
    assert world.created()["registry"] == made["id"]


def test_x15_without_an_idempotency_key_a_create_goes_out_once_and_is_looked_for() -> None:
    world = RunPodInstallation()
    world.simulator.fail(Failure(method="POST", path="/v2/pods", after=True, drop=True))
    world.create_pod()
    world.pump()
    first = [(one.method, one.path) for one in world.account.requests if not one.path.startswith("/v2/catalog")]
    assert first.count(("POST", "/v2/pods")) == 1
    assert first.index(("GET", "/v2/pods"), first.index(("POST", "/v2/pods"))) > 0
    assert len(world.alive()) == 1


@pytest.mark.parametrize(
    ("pod", "state"),
    [
        ({"desiredStatus": "RUNNING"}, InstanceState.PENDING),
        ({"desiredStatus": "RUNNING", "status": "STARTING"}, InstanceState.PENDING),
        ({"desiredStatus": "TERMINATED", "status": "RUNNING"}, InstanceState.RUNNING),
        ({"status": "PROVISIONING"}, InstanceState.PENDING),
        ({"status": "EXITED"}, InstanceState.EXITED),
        ({"status": "ERROR"}, InstanceState.FAILED),
        ({"status": "TERMINATED"}, InstanceState.TERMINATED),
        ({"status": "A NEW WORD"}, InstanceState.PENDING),
    ],
)
def test_x15_a_wish_is_no_reading_and_an_unknown_word_ends_nothing(pod: dict[str, Any], state: InstanceState) -> None:
    assert to_instance({"id": "p", **pod}).state is state


def test_x15_a_terminated_pod_leaves_the_list_and_still_reads_by_its_id() -> None:
    world = RunPodInstallation()
    world.account.reads_after_delete = 200
    made = up(world)
    world.delete_pod()
    world.pump()
    world.run(1)
    provider = world.providers.get("runpod")
    assert made not in [one.id for one in provider.list_instances().instances]
    read = provider.get(made)
    assert read is not None
    assert read.state is InstanceState.TERMINATED
    assert world.pod() is None
    assert list(world.claims.live(CLUSTER)) == []


def test_x15_a_429_is_believed_for_as_long_as_its_headers_say() -> None:
    world = RunPodWorld()
    world.account.faults.quota = Quota(0, timedelta(seconds=40))
    with pytest.raises(RateLimitedError) as caught:
        world.provider.list_instances()
    assert caught.value.retry_after == timedelta(seconds=40)


def test_x15_a_create_asks_for_one_type_and_the_walk_is_ours() -> None:
    world = RunPodWorld()
    types = ("NVIDIA H100 PCIe", "NVIDIA H100 NVL")
    world.account.market.set_stock(types[0], 0)
    made = world.provider.provision(request(types=types))
    assert made.instance_type == types[1]
    assert [body["gpu"]["id"] for body in world.calls("POST", "/v2/pods")] == list(types)
    world.account.market.set_stock(types[1], 0)
    with pytest.raises(NoCapacityError):
        world.provider.provision(request(of=mark(2), types=types))


def test_x15_a_credential_has_no_host_so_each_registry_has_its_own() -> None:
    """Name, user and password only: two registries with one login are two objects, told apart by their names."""
    world = RunPodInstallation()
    login = ("canary-user", "canary-password")
    for number, host in enumerate(("one.example.com", "two.example.com")):
        put_login(world, (host, *login), name=f"login-{number}")
        world.create_pod(f"train-{number}", **with_image(f"{host}/train:1", f"login-{number}"))
    world.pump()
    names = [one["name"] for one in world.account.registries.list()]
    assert len(set(names)) == 2
    bodies = world.calls("POST", "/v2/pods")
    assert len({body["registry"] for body in bodies}) == 2
    assert all(set(body) == {"name", "username", "password"} for body in world.calls("POST", "/v2/registries"))
