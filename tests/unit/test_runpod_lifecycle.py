"""A pod's life as the provider tells it: states, cost, the end."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from nebula.domain.instance import InstanceState
from nebula.providers.errors import AuthenticationError, ProviderUnavailableError, RateLimitedError
from nebula.providers.runpod.instances import to_instance
from nebula.stores.dynamo_items import to_attributes

from local.runpod.faults import Failure
from tests.support.runpod import CPU_ONLY, RunPodWorld, mark, request


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("PROVISIONING", InstanceState.PENDING),
        ("STARTING", InstanceState.PENDING),
        ("RUNNING", InstanceState.RUNNING),
        ("running", InstanceState.RUNNING),
        ("EXITED", InstanceState.EXITED),
        ("ERROR", InstanceState.FAILED),
        ("TERMINATED", InstanceState.TERMINATED),
        ("MIGRATING", InstanceState.PENDING),
        ("", InstanceState.PENDING),
        (None, InstanceState.PENDING),
        (7, InstanceState.PENDING),
    ],
)
def test_states_are_mapped_and_unknown_ones_wait(status: Any, state: InstanceState) -> None:
    assert to_instance({"id": "a", "status": status}).state is state


def test_a_pod_comes_up_over_time() -> None:
    world = RunPodWorld()
    made = world.provider.provision(request())
    seen = []
    for _ in range(4):
        instance = world.provider.get(made.id)
        assert instance is not None
        seen.append((instance.provider_state, instance.region, instance.started_at is not None))
        world.pass_time(1)
    center = seen[-1][1]
    assert center.startswith("US-")
    assert seen == [
        ("PROVISIONING", "", False),
        ("STARTING", center, False),
        ("RUNNING", center, True),
        ("RUNNING", center, True),
    ]


def test_cost_is_what_is_billed_now() -> None:
    world = RunPodWorld()
    made = world.provider.provision(request())
    assert made.cost_per_hour == Decimal("3.29")
    world.account.pods[made.id].force("EXITED", world.clock.now())
    stopped = world.provider.get(made.id)
    assert stopped is not None
    assert stopped.state is InstanceState.EXITED
    assert stopped.cost_per_hour == 0


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ("0.44" + "0" * 40 + "1", "0.4400000001"),
        ("3.29" + "0" * 40, "3.2900000000"),
        ("1e-200", "1e-10"),
        ("0.44", "0.44"),
    ],
)
def test_a_cost_with_more_digits_than_a_ledger_row_takes_is_rounded_up(told: str, kept: str) -> None:
    cost = to_instance({"id": "a", "cost": Decimal(told)}).cost_per_hour
    assert cost == Decimal(kept)
    assert to_attributes({"cost": cost})


@pytest.mark.parametrize("cost", [None, "0.35", -1, True, [], 10**9, {}])
def test_a_cost_that_is_no_amount_is_not_known(cost: Any) -> None:
    assert to_instance({"id": "a", "cost": cost}).cost_per_hour is None


def test_a_cpu_pod_is_read_too() -> None:
    world = RunPodWorld()
    made = world.provider.provision(request(shape=CPU_ONLY, types=("cpu3c",)))
    assert made.instance_type == "cpu3c"
    assert made.cost_per_hour == Decimal("0.06")


@pytest.mark.parametrize("moment", ["yesterday", "2026-11-01T12:00:00", 5, None, ""])
def test_a_time_without_a_zone_is_no_time(moment: Any) -> None:
    assert to_instance({"id": "a", "createdAt": moment, "startedAt": moment}).created_at is None


def test_the_end_is_a_delete_never_a_stop() -> None:
    world = RunPodWorld()
    made = world.provider.provision(request())
    world.provider.terminate(made.id)
    assert world.account.alive() == []
    assert world.count("DELETE", f"/v2/pods/{made.id}") == 1
    assert world.count("POST") == 1
    assert world.provider.get(made.id) is None
    assert world.provider.find(mark()) is None


def test_ending_twice_and_ending_what_never_was_succeed() -> None:
    world = RunPodWorld()
    made = world.provider.provision(request())
    for instance_id in (made.id, made.id, "never-was"):
        world.provider.terminate(instance_id)
    assert world.account.alive() == []


def test_a_terminated_pod_that_still_reads_is_terminated() -> None:
    world = RunPodWorld()
    world.account.reads_after_delete = 200
    made = world.provider.provision(request())
    world.provider.terminate(made.id)
    read = world.provider.get(made.id)
    assert read is not None
    assert read.state is InstanceState.TERMINATED
    assert read.cost_per_hour == 0


@pytest.mark.parametrize("status", [200, 404])
def test_a_refused_delete_of_what_is_gone_is_success(status: int) -> None:
    world = RunPodWorld()
    world.account.reads_after_delete = status
    made = world.provider.provision(request())
    world.simulator.fail(Failure(409, "pod is already terminated", method="DELETE", after=True))
    world.provider.terminate(made.id)
    assert world.count("DELETE") == 1
    assert not world.account.alive()


def test_a_refused_delete_of_what_lives_is_no_success() -> None:
    world = RunPodWorld()
    made = world.provider.provision(request())
    for status in (400, 409):
        world.simulator.fail(Failure(status, "not now", method="DELETE"))
        with pytest.raises(ProviderUnavailableError):
            world.provider.terminate(made.id)
    assert len(world.account.alive()) == 1


def test_a_delete_whose_answer_is_lost_is_repeated() -> None:
    world = RunPodWorld()
    made = world.provider.provision(request())
    world.simulator.fail(Failure(method="DELETE", after=True, drop=True))
    world.provider.terminate(made.id)
    assert world.count("DELETE") == 2
    assert world.account.alive() == []


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "<html>404 Not Found</html>",
        "null",
        "[]",
        '{"message": "Not Found"}',
        '{"detail": "Not Found"}',
        '{"title": "Not Found", "status": 404, "type": "about:blank"}',
        '{"title": "Not Found", "status": 200, "detail": "pod not found"}',
    ],
)
def test_a_strangers_404_is_no_absence(raw: str) -> None:
    """A wrong address, a proxy: silence never looks like absence."""
    world = RunPodWorld()
    made = world.provider.provision(request())
    world.simulator.fail(Failure(404, path="/v2/pods/.*", raw=raw, times=2))
    with pytest.raises(ProviderUnavailableError):
        world.provider.get(made.id)
    with pytest.raises(ProviderUnavailableError):
        world.provider.terminate(made.id)


@pytest.mark.parametrize(
    "raw", ['{"error": "pod not found", "status": 404}', '{"title": "x", "status": 404, "detail": "no such thing"}']
)
def test_each_form_of_runpods_own_404_is_absence(raw: str) -> None:
    world = RunPodWorld()
    world.simulator.fail(Failure(404, path="/v2/pods/.*", raw=raw))
    assert world.provider.get("gone") is None


@pytest.mark.parametrize(
    ("status", "expected"),
    [(401, AuthenticationError), (403, AuthenticationError), (429, RateLimitedError), (500, ProviderUnavailableError)],
)
def test_a_read_that_fails_raises(status: int, expected: type[Exception]) -> None:
    world = RunPodWorld()
    made = world.provider.provision(request())
    world.simulator.fail(Failure(status, path="/v2/pods/.*", times=6))
    with pytest.raises(expected):
        world.provider.get(made.id)
    with pytest.raises(expected):
        world.provider.terminate(made.id)


@pytest.mark.parametrize("bad", ["", ".", ".."])
def test_an_id_that_would_address_the_whole_list_is_never_sent(bad: str) -> None:
    world = RunPodWorld()
    for call in (world.provider.get, world.provider.terminate, world.provider.delete_registry_credential):
        with pytest.raises(ProviderUnavailableError):
            call(bad)
    assert world.account.requests == []


def test_ids_are_percent_encoded() -> None:
    world = RunPodWorld()
    assert world.provider.get("a/b c?d#e%") is None
    assert world.account.requests[-1].path == "/v2/pods/a%2Fb%20c%3Fd%23e%25"


def test_logs_are_the_containers_lines() -> None:
    world = RunPodWorld()
    made = world.provider.provision(request())
    world.account.pods[made.id].lines += [("container", f"line {n}") for n in range(5)]
    assert list(world.provider.logs(made.id, tail=2)) == ["line 3", "line 4"]
    assert list(world.provider.logs(made.id))[:2] == ["create container ghcr.io/acme/serve:1", "start container"]
    with pytest.raises(ProviderUnavailableError):
        world.provider.logs("never-was")


def test_what_the_provider_can_do() -> None:
    can = RunPodWorld().provider.capabilities
    assert can.cpu_only
    assert can.ingress
    assert not can.ingress_authentication
    assert not can.queues
    assert not can.reports_exit_code
    assert [str(one) for one in can.capacity_types] == ["OnDemand"]
    assert [str(one) for one in can.egress_modes] == ["Open"]
    assert timedelta(0) < can.visibility_delay < timedelta(minutes=1)
    assert RunPodWorld().provider.account() is None
