"""The simulated provider shows what happens behind our back, keeps credentials, and is built from a parameter."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from nebula.clock import ManualClock
from nebula.domain.instance import InstanceState
from nebula.providers.errors import (
    CredentialInUseError,
    ProviderUnavailableError,
    ProviderUnconfiguredError,
)
from nebula.providers.simulated import Behaviour, Call, SimulatedProvider, build
from pydantic import SecretStr

from tests.support.simulated import QUEUES, SECOND, START, request_for


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def provider(clock: ManualClock) -> SimulatedProvider:
    return SimulatedProvider(clock)


def test_the_container_exits_by_itself(clock: ManualClock) -> None:
    provider = SimulatedProvider(clock, behaviour=Behaviour(boot=SECOND, runs_for=60 * SECOND, exit_code=3))
    made = provider.provision(request_for())
    clock.advance(61 * SECOND)
    seen = provider.get(made.id)
    assert seen is not None
    assert (seen.state, seen.exit_code) == (InstanceState.EXITED, 3)


def test_what_happens_behind_our_back(provider: SimulatedProvider, clock: ManualClock) -> None:
    first, second, third, fourth = (provider.provision(request_for(claim=f"{n}")).id for n in range(4))
    foreign = provider.console.add_foreign()
    provider.console.exit(first, 0)
    provider.console.fail(second, "GPU fell off the bus")
    provider.console.delete(third)
    notice = provider.console.interrupt(fourth, notice=2 * SECOND)
    assert notice["detail"] == {"instance-id": fourth, "instance-action": "terminate", "provider": "simulated"}
    before = provider.get(fourth)
    assert before is not None
    assert (before.state, before.preempted) == (InstanceState.RUNNING, False)
    clock.advance(2 * SECOND)
    states = {i.id: (i.state, i.exit_code, i.message, i.preempted) for i in provider.list_instances().instances}
    assert states == {
        first: (InstanceState.EXITED, 0, "", False),
        second: (InstanceState.FAILED, None, "GPU fell off the bus", False),
        fourth: (InstanceState.TERMINATED, None, "", True),
        foreign: (InstanceState.RUNNING, None, "", False),
    }
    assert [m.id for m in provider.console.owned()] == [first, second]
    with pytest.raises(KeyError):
        provider.console.exit("nobody", 0)
    with pytest.raises(ValueError, match="ended already"):
        provider.console.exit(first, 0)


def test_a_queued_machine_runs_when_let(clock: ManualClock) -> None:
    provider = SimulatedProvider(clock, capabilities=QUEUES, behaviour=Behaviour(boot=timedelta(days=1)))
    made = provider.provision(request_for())
    clock.advance(timedelta(minutes=5))
    assert provider.list_instances().instances[0].state is InstanceState.PENDING
    provider.console.run_now(made.id)
    assert provider.list_instances().instances[0].state is InstanceState.RUNNING


def test_registry_credentials(provider: SimulatedProvider) -> None:
    user, password = SecretStr("u"), SecretStr("p")
    made = provider.ensure_registry_credential("nebula-f-1", user, password)
    assert provider.ensure_registry_credential("nebula-f-1", user, password) == made
    box = provider.provision(request_for(registry_credential_id=made))
    with pytest.raises(CredentialInUseError):
        provider.delete_registry_credential(made)
    provider.terminate(box.id)
    for _ in range(2):
        provider.delete_registry_credential(made)
    assert provider.list_registry_credentials() == ()
    with pytest.raises(ValueError, match="must not be empty"):
        provider.ensure_registry_credential("n", SecretStr(""), password)


def test_regions(clock: ManualClock) -> None:
    whole, split = SimulatedProvider(clock), SimulatedProvider(clock, per_region=True)
    assert [r.label for r in whole.regions(())] == ["any"]
    assert [(r.label, r.ids) for r in whole.regions(("x", "y"))] == [("x,y", ("x", "y"))]
    assert [(r.label, r.ids) for r in split.regions(("x", "y"))] == [("x", ("x",)), ("y", ("y",))]


def test_failing_offerings_are_a_note(provider: SimulatedProvider) -> None:
    assert {o.accelerator for o in provider.offerings().offerings} == {"H100", "A100", "L4", "T4", None}
    provider.script.fail(Call.OFFERINGS, ProviderUnavailableError("catalog down"))
    assert provider.offerings().note == "catalog down"


def test_build_shares_one_object_per_parameter(clock: ManualClock) -> None:
    first = build(SecretStr('{"boot": "PT2S"}'), clock)
    assert build(SecretStr('{"boot": "PT2S"}'), clock) is first
    assert first.behaviour.boot == 2 * SECOND


@pytest.mark.parametrize("text", ["not json secret", '{"boots": 1}', "[]"])
def test_build_refuses_a_bad_parameter_without_showing_it(clock: ManualClock, text: str) -> None:
    with pytest.raises(ProviderUnconfiguredError) as refused:
        build(SecretStr(text), clock)
    assert text not in str(refused.value)


def test_many_threads_create_and_terminate(provider: SimulatedProvider) -> None:
    def work(worker: int) -> None:
        for n in range(100):
            made = provider.provision(request_for(claim=f"{worker}-{n}"))
            provider.list_instances()
            if n % 2:
                provider.terminate(made.id)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    living = provider.console.owned()
    assert len(living) == len({m.id for m in living}) == 200


def test_the_dead_are_forgotten_in_a_long_run(provider: SimulatedProvider) -> None:
    for n in range(1000):
        provider.terminate(provider.provision(request_for(claim=f"{n}")).id)
    assert provider.console.living() == []
    with pytest.raises(KeyError):
        provider.console.exit("simulated-000001", 0)
