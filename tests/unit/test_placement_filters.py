"""Every closed reason, reached by exactly the input that it names."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from nebula.domain.candidate import CapacityType, Shape
from nebula.domain.nodepool import Ingress, IngressAuthentication, IngressMode, ProviderEntry
from nebula.domain.workload import Egress, EgressMode, RestartPolicy
from nebula.placement.engine import decide
from nebula.placement.request import ProviderSupply
from nebula.placement.verdict import Decision, Reason
from nebula.providers.base import RegionSet

from tests.support.placing import CAPABLE, H100, NOW, block, offering, pool, request, supply

CPU = Shape(cpu=Decimal(2), memory_gib=Decimal(4))
OPEN_PORT = Ingress(mode=IngressMode.FIRST_PORT)


STOCK = [offering(price="1.99", instance_type="a", available=False), offering(price="2.99", instance_type="b")]


def judged(the_supply: ProviderSupply, the_request: Any = None, the_pool: Any = None, blocks: Any = ()) -> Decision:
    return decide(the_request or request(), the_pool or pool(), [the_supply], blocks, {}, NOW)


CASES: dict[Reason, Callable[[], Decision]] = {
    Reason.PROVIDER_UNCONFIGURED: lambda: judged(ProviderSupply(ProviderEntry(name="one"), unconfigured="no key")),
    Reason.ACCELERATOR_UNSUPPORTED: lambda: judged(supply(offerings=[offering(accelerator="T4")])),
    Reason.CPU_ONLY_UNSUPPORTED: lambda: judged(supply(), request(CPU)),
    Reason.CAPACITY_TYPE_UNSUPPORTED: lambda: judged(supply(), the_pool=pool(capacity_types=(CapacityType.SPOT,))),
    Reason.REGION_UNSUPPORTED: lambda: judged(
        supply(
            ProviderEntry(name="one", regions=("mars",)),
            [offering(regions=("US-1",))],
            regions=[RegionSet(label="mars", ids=("mars",))],
        )
    ),
    Reason.EGRESS_UNSUPPORTED: lambda: judged(supply(), the_pool=pool(egress=Egress(mode=EgressMode.BLOCKED))),
    Reason.INGRESS_UNSUPPORTED: lambda: judged(
        supply(capabilities=CAPABLE.model_copy(update={"ingress": False})),
        request(publishes=True),
        pool(ingress=OPEN_PORT),
    ),
    Reason.INGRESS_AUTHENTICATION_UNSUPPORTED: lambda: judged(
        supply(capabilities=CAPABLE.model_copy(update={"ingress_authentication": False})),
        request(publishes=True),
        pool(ingress=OPEN_PORT),
    ),
    Reason.EXIT_CODE_UNSUPPORTED: lambda: judged(
        supply(capabilities=CAPABLE.model_copy(update={"reports_exit_code": False})),
        request(restart_policy=RestartPolicy.NEVER),
    ),
    Reason.NODE_NOT_READY: lambda: judged(supply(node_not_ready="Ready is Unknown")),
    Reason.NODE_UNSUITABLE: lambda: judged(supply(node_unsuitable="amd.com/gpu is not listed")),
    Reason.PRICE_ABOVE_MAXIMUM: lambda: judged(supply(), the_pool=pool(max_price_per_hour=Decimal("1.99"))),
    Reason.BUDGET_EXHAUSTED: lambda: judged(supply(), request(budget_left=Decimal("1.99"))),
    Reason.UNAVAILABLE: lambda: judged(supply(offerings=[offering(available=False)])),
    Reason.BLOCKED: lambda: judged(supply(), blocks=[block()]),
    Reason.RATE_LIMITED: lambda: judged(supply(), blocks=[block(kind="rate_limited", reason="RateLimited")]),
    Reason.EXCLUDED: lambda: judged(
        supply(), request(exclusions=frozenset({"one/H100:1/cpu=0/mem=0Gi/disk=default/OnDemand/any"}))
    ),
}


def test_every_reason_has_a_case() -> None:
    assert set(CASES) == set(Reason)


@pytest.mark.parametrize("reason", Reason)
def test_reason(reason: Reason) -> None:
    decision = CASES[reason]()
    assert decision.candidate is None
    assert [v.refusal.reason for v in decision.verdicts if v.refusal] == [reason]
    assert decision.reason == reason
    assert reason in decision.message
    assert decision.retry_at is not None
    assert decision.retry_at > NOW


def test_the_earlier_reason_wins() -> None:
    refused = supply(offerings=[offering(available=False)], node_not_ready="gone")
    decision = judged(refused, request(budget_left=Decimal(0)), blocks=[block()])
    assert decision.reason == Reason.NODE_NOT_READY


def test_application_authentication_admits_a_provider_without_its_own() -> None:
    ingress = Ingress(mode=IngressMode.FIRST_PORT, authentication=IngressAuthentication.APPLICATION)
    plain = supply(capabilities=CAPABLE.model_copy(update={"ingress_authentication": False}))
    assert judged(plain, request(publishes=True), pool(ingress=ingress)).candidate is not None


def test_a_pod_that_publishes_nothing_asks_for_no_authentication() -> None:
    plain = supply(capabilities=CAPABLE.model_copy(update={"ingress": False, "ingress_authentication": False}))
    assert judged(plain, request(publishes=False), pool(ingress=OPEN_PORT)).candidate is not None


@pytest.mark.parametrize("policy", [RestartPolicy.NEVER, RestartPolicy.ON_FAILURE])
def test_unknown_exit_is_admitted_on_the_pools_word(policy: RestartPolicy) -> None:
    blind = supply(capabilities=CAPABLE.model_copy(update={"reports_exit_code": False}))
    assert judged(blind, request(restart_policy=policy)).candidate is None
    assert judged(blind, request(restart_policy=policy), pool(allow_unknown_exit=True)).candidate is not None


def test_a_region_that_names_nothing_never_widens_to_anywhere() -> None:
    """aws/skypilot-like trap: a group that expands to no region must not become "everywhere"."""
    entry = ProviderEntry(name="one", regions=("sa",))
    decision = judged(supply(entry, regions=[RegionSet(label="sa", ids=())]))
    assert decision.reason == Reason.REGION_UNSUPPORTED


def test_stock_is_judged_within_the_wanted_regions() -> None:
    entry = ProviderEntry(name="one", regions=("EU-1",))
    rows = [offering(regions=("EU-1", "US-1"), available_regions=("US-1",))]
    here = supply(entry, rows, regions=[RegionSet(label="EU-1", ids=("EU-1",))])
    assert judged(here).reason == Reason.UNAVAILABLE
    assert judged(supply(offerings=rows)).candidate is not None


def test_one_accelerator_that_is_sold_only_in_eights() -> None:
    eight = offering(per_accelerator=False, accelerator_count=8, price="20")
    four = request(Shape(accelerator="H100", accelerator_count=4))
    refused = judged(supply(offerings=[eight]), four)
    assert refused.reason == Reason.ACCELERATOR_UNSUPPORTED
    assert "only in 8" in refused.message
    taken = judged(supply(offerings=[eight]), four, pool(allow_larger_shapes=True)).candidate
    assert taken is not None
    assert (taken.shape.accelerator_count, taken.price.total) == (8, Decimal(20))


def test_a_name_that_is_almost_right_is_hinted_at() -> None:
    rows = [offering(accelerator="A100-80GB"), offering(accelerator="A100-40GB")]
    decision = judged(supply(offerings=rows), request(Shape(accelerator="A100", accelerator_count=1)))
    assert "A100-40GB, A100-80GB" in decision.message


def test_accelerators_match_in_any_case() -> None:
    rows = [offering(accelerator="RTX6000-Ada")]
    shape = Shape(accelerator="RTX6000-ADA", accelerator_count=1)
    assert judged(supply(offerings=rows), request(shape)).candidate is not None


def test_cpu_and_memory_must_fit_a_whole_machine() -> None:
    machine = offering(per_accelerator=False, vcpu=Decimal(8), memory_gib=Decimal(32))
    fits = H100.model_copy(update={"cpu": Decimal(8), "memory_gib": Decimal(32)})
    wide = H100.model_copy(update={"cpu": Decimal(9)})
    assert judged(supply(offerings=[machine]), request(fits)).candidate is not None
    assert judged(supply(offerings=[machine]), request(wide)).reason == Reason.ACCELERATOR_UNSUPPORTED


def test_more_accelerators_than_one_machine_holds() -> None:
    nine = request(Shape(accelerator="H100", accelerator_count=9))
    assert judged(supply(), nine).reason == Reason.ACCELERATOR_UNSUPPORTED


def test_a_budget_the_ledger_refused_is_not_tried_again_in_the_pass() -> None:
    key = "one/H100:1/cpu=0/mem=0Gi/disk=default/OnDemand/any"
    decision = judged(supply(), request(budget_left=Decimal(100), over_budget=frozenset({key})))
    assert decision.reason == Reason.BUDGET_EXHAUSTED
    assert decision.wanted_per_hour() == Decimal("2.00")


def test_a_block_frees_at_the_last_expiry_and_an_expired_one_is_passed_over() -> None:
    blocks = [block(seconds=30), block(seconds=50, shape="H100:*"), block(seconds=-1)]
    decision = judged(supply(), blocks=blocks)
    refusal = decision.verdicts[0].refusal
    assert refusal is not None
    assert refusal.frees_at == NOW + timedelta(seconds=50)
    assert judged(supply(), blocks=[block(seconds=0)]).candidate is not None


def test_a_dearer_type_in_stock_that_does_not_fit_waits_for_budget_and_not_for_stock() -> None:
    decision = judged(supply(offerings=STOCK), request(budget_left=Decimal("2.01")), pool(budget_per_hour=Decimal(5)))
    assert decision.reason == Reason.BUDGET_EXHAUSTED
    assert "$2.99/h does not fit in what is left of budgetPerHour $5.00/h" in decision.message
    assert decision.wanted_per_hour() == Decimal("2.99"), "what has to be freed for the Pod to be woken"


def test_a_dearer_type_in_stock_above_the_maximum_waits_for_stock() -> None:
    the_pool = pool(budget_per_hour=Decimal(5), max_price_per_hour=Decimal("2.50"))
    decision = judged(supply(offerings=STOCK), request(budget_left=Decimal("2.01")), the_pool)
    assert (decision.reason, decision.wanted_per_hour()) == (Reason.UNAVAILABLE, None)
