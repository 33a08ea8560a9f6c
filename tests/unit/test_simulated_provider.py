"""The simulated provider keeps the Provider contract and does on demand what real ones do to us."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from nebula.clock import ManualClock
from nebula.domain.candidate import CapacityType
from nebula.domain.instance import InstanceState, Mark
from nebula.domain.workload import Egress, EgressMode, PublishedPort, Workload
from nebula.providers.base import Provider, RegistryCredentials
from nebula.providers.errors import (
    ImagePullError,
    NoCapacityError,
    ProviderUnavailableError,
    RateLimitedError,
    RequestRefusedError,
    UnsupportedAcceleratorError,
)
from nebula.providers.simulated import DEFAULT_CAPABILITIES, Behaviour, Call, Script, SimulatedProvider

from tests.support.simulated import SECOND, SHAPE, START, request_for


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def provider(clock: ManualClock) -> SimulatedProvider:
    return SimulatedProvider(clock)


def test_fulfils_both_protocols(provider: SimulatedProvider) -> None:
    as_provider: Provider = provider
    as_registry: RegistryCredentials = provider
    assert isinstance(as_provider, Provider)
    assert isinstance(as_registry, RegistryCredentials)


def test_life_of_a_machine(clock: ManualClock) -> None:
    life = Behaviour(boot=5 * SECOND, termination=3 * SECOND, linger=10 * SECOND)
    provider = SimulatedProvider(clock, behaviour=life)
    made = provider.provision(request_for())
    assert made.state is InstanceState.PENDING
    clock.advance(5 * SECOND)
    running = provider.get(made.id)
    assert running is not None
    assert (running.state, running.cost_per_hour) == (InstanceState.RUNNING, Decimal("4.00"))
    provider.terminate(made.id)
    assert provider.list_instances().instances[0].state is InstanceState.RUNNING
    clock.advance(3 * SECOND)
    ended = provider.get(made.id)
    assert ended is not None
    assert (ended.state, ended.cost_per_hour) == (InstanceState.TERMINATED, Decimal(0))
    assert provider.find(made.mark or pytest.fail("no mark")) is None
    clock.advance(10 * SECOND)
    assert provider.get(made.id) is None
    assert provider.list_instances().instances == ()


def test_terminate_is_idempotent_and_absent_is_success(provider: SimulatedProvider) -> None:
    made = provider.provision(request_for())
    for _ in range(2):
        provider.terminate(made.id)
    provider.terminate("never-made")
    assert provider.console.living() == []


def test_lists_miss_a_new_machine_until_it_is_visible(clock: ManualClock) -> None:
    provider = SimulatedProvider(clock, behaviour=Behaviour(visible_after=7 * SECOND))
    made = provider.provision(request_for())
    assert provider.get(made.id) is not None
    assert provider.list_instances().instances == ()
    clock.advance(7 * SECOND)
    assert [i.id for i in provider.list_instances().instances] == [made.id]


def test_a_stale_list_still_shows_what_is_gone(clock: ManualClock) -> None:
    provider = SimulatedProvider(clock)
    made = provider.provision(request_for())
    clock.advance(20 * SECOND)
    provider.behaviour = Behaviour(list_lag=10 * SECOND)
    provider.terminate(made.id)
    assert provider.get(made.id) is None
    assert [i.state for i in provider.list_instances().instances] == [InstanceState.RUNNING]
    clock.advance(10 * SECOND)
    assert provider.list_instances().instances == ()


def test_one_broken_scope_is_named_and_the_others_are_complete(clock: ManualClock) -> None:
    provider = SimulatedProvider(clock, scopes=("a", "b"), per_region=True)
    ids = [provider.provision(request_for(claim=f"{n}", region=region)).id for n, region in enumerate("aabb")]
    provider.break_listing("a", shown=1)
    listing = provider.list_instances()
    assert [i.id for i in listing.instances] == [ids[0], ids[2], ids[3]]
    assert (listing.is_complete("a"), listing.is_complete("b")) == (False, True)
    assert listing.failed_scopes.keys() == {"a"}
    with pytest.raises(ProviderUnavailableError):
        provider.find(Mark(installation="test", claim_id="0", attempt=1))
    provider.mend_listings()
    assert len(provider.list_instances().instances) == 4


def test_nothing_listed_at_all_raises(provider: SimulatedProvider) -> None:
    provider.break_listing()
    with pytest.raises(ProviderUnavailableError):
        provider.list_instances()


def test_a_lost_answer_leaves_the_machine(provider: SimulatedProvider) -> None:
    provider.script.fail(Call.PROVISION, ProviderUnavailableError("no answer"), after=True)
    request = request_for()
    with pytest.raises(ProviderUnavailableError):
        provider.provision(request)
    found = provider.find(request.mark)
    assert found is not None
    assert found.mark == request.mark


def test_a_fault_before_the_effect_makes_nothing_and_then_heals(provider: SimulatedProvider) -> None:
    provider.script.fail(Call.PROVISION, RateLimitedError("slow", retry_after=SECOND), times=2)
    for _ in range(2):
        with pytest.raises(RateLimitedError):
            provider.provision(request_for())
    assert provider.console.living() == []
    provider.provision(request_for())
    assert provider.script.counts[Call.PROVISION] == 3


def test_a_fault_hits_only_what_it_matches(provider: SimulatedProvider) -> None:
    provider.script.fail(Call.GET, ProviderUnavailableError("down"), matches=lambda subject: subject == "b")
    assert provider.get("a") is None
    with pytest.raises(ProviderUnavailableError):
        provider.get("b")
    provider.script.fail(Call.GET, ProviderUnavailableError("down"))
    provider.script.heal()
    assert provider.get("b") is None


def test_latency_is_slept_and_the_hook_runs_first(clock: ManualClock) -> None:
    slept: list[float] = []
    seen: list[Call] = []
    provider = SimulatedProvider(clock, script=Script(sleep=slept.append))
    provider.script.delay(Call.LIST, timedelta(milliseconds=250))
    provider.script.before_each(lambda call, _: seen.append(call))
    provider.list_instances()
    provider.account()
    assert slept == [0.25]
    assert seen == [Call.LIST, Call.ACCOUNT]


def test_walks_instance_types_until_stock_is_gone(provider: SimulatedProvider) -> None:
    provider.market.limit(1, instance_type="sim-h100")
    provider.market.limit(1, instance_type="sim-a100")
    types = [provider.provision(request_for(claim=f"{n}")).instance_type for n in range(2)]
    assert types == ["sim-h100", "sim-a100"]
    with pytest.raises(NoCapacityError) as refused:
        provider.provision(request_for(claim="2"))
    assert [line.split(":")[0] for line in refused.value.failures] == ["sim-h100", "sim-a100"]
    provider.terminate(provider.console.living()[0].id)
    assert provider.provision(request_for(claim="3")).instance_type == "sim-h100"
    provider.market.restock()
    assert provider.provision(request_for(claim="4")).instance_type == "sim-h100"


def test_refuses_what_it_cannot_do(clock: ManualClock) -> None:
    can = DEFAULT_CAPABILITIES.model_copy(
        update={
            "egress_modes": frozenset({EgressMode.OPEN}),
            "max_name_length": 5,
            "capacity_types": frozenset({CapacityType.ON_DEMAND}),
        }
    )
    provider = SimulatedProvider(clock, capabilities=can)
    blocked = Workload(image="i", shape=SHAPE, egress=Egress(mode=EgressMode.BLOCKED))
    spot = request_for().candidate.model_copy(update={"capacity_type": CapacityType.SPOT})
    for changes in ({"workload": blocked}, {"name": "longer"}, {"candidate": spot}):
        with pytest.raises(RequestRefusedError):
            provider.provision(request_for(**changes))
    unsold = request_for().candidate.model_copy(update={"instance_types": ("mi300",)})
    with pytest.raises(UnsupportedAcceleratorError):
        provider.provision(request_for(candidate=unsold))
    with pytest.raises(ImagePullError):
        provider.provision(request_for(registry_credential_id="gone"))
    assert provider.console.living() == []


def test_endpoint_only_where_a_port_is_published(provider: SimulatedProvider) -> None:
    open_one = Workload(image="i", shape=SHAPE, ports=(PublishedPort(port=8080),))
    published = provider.provision(request_for(workload=open_one))
    assert published.endpoint is not None
    assert "8080" in published.endpoint
    assert provider.provision(request_for(claim="d")).endpoint is None
