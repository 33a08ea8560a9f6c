"""What alarms watch: each figure, and when it is none."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from nebula.domain.claim import Claim, Phase
from nebula.domain.claim import Observation as Seen
from nebula.kubernetes.pod import Pod
from nebula.lifecycle.deadlines import STUCK_AFTER
from nebula.stores.blocks import Block
from nebula.workflows.gauges import UNBOUND_AFTER, Gauges, measure, report, spend_over_budget
from nebula.workflows.observe import Observation
from nebula.workflows.views import ClusterView

from tests.support.claims import NOW, SECOND, pending, provisioned
from tests.support.world import CLUSTER, World, pod_object, pool_object

API: Any = None


def _pod(claim: Claim | None = None, *, age: timedelta = SECOND, **changes: Any) -> Pod:
    raw = pod_object()
    raw["metadata"] |= {
        "uid": claim.pod_uid if claim else "uid-x",
        "resourceVersion": "1",
        "creationTimestamp": (NOW - age).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    raw["spec"] |= changes
    return Pod.from_object(raw)


def _measure(*claims: Claim, pods: tuple[Pod, ...] = (), blocks: tuple[Block, ...] = ()) -> Gauges:
    view = ClusterView(API, list(claims), {pod.uid: pod for pod in pods})
    seen = Observation({"prod": view}, {"runpod": API}, handled=0, cut_short=False)
    return measure(seen, clusters=["prod"], providers=["runpod"], blocks={"runpod": blocks}, now=NOW)


def _block(**changes: Any) -> Block:
    fields = {"provider": "runpod", "reason": "x", "created_at": NOW, "expires_at": NOW + SECOND} | changes
    return Block(**fields)


def test_nothing_to_say_is_all_zero() -> None:
    assert _measure(pending(), pods=(_pod(schedulingGates=[]),)) == Gauges()


def test_the_oldest_pod_behind_our_gate_counts_in_seconds() -> None:
    assert _measure(pods=(_pod(age=90 * SECOND),)).oldest_gated_pod == pytest.approx(90, abs=1)


def test_a_pod_that_also_waits_for_somebody_else_is_not_ours_yet() -> None:
    gates = [{"name": "nebula.inftyai.com/provider-selection"}, {"name": "other.example/gate"}]
    assert _measure(pods=(_pod(age=90 * SECOND, schedulingGates=gates),)).oldest_gated_pod == 0


def test_a_claim_that_its_phase_does_not_explain_is_overdue() -> None:
    stuck = provisioned(phase=Phase.TERMINATING, phase_since=NOW - STUCK_AFTER - SECOND)
    assert _measure(stuck, pending()).overdue_claims == 1


def test_a_released_pod_that_nobody_bound_is_unbound_after_a_minute() -> None:
    released = provisioned(phase=Phase.RELEASED, released_at=NOW - UNBOUND_AFTER - SECOND)
    assert _measure(released, pods=(_pod(released, schedulingGates=[]),)).unbound_pods == 1
    bound = _pod(released, schedulingGates=[], nodeName="nebula-runpod")
    assert _measure(released, pods=(bound,)).unbound_pods == 0
    fresh = released.model_copy(update={"released_at": NOW})
    assert _measure(fresh, pods=(_pod(released, schedulingGates=[]),)).unbound_pods == 0


def test_whoever_did_not_answer_is_unknown() -> None:
    silent = Observation({"a": ClusterView(API)}, {}, handled=0, cut_short=False)
    found = measure(silent, clusters=["a", "b"], providers=["runpod"], blocks={}, now=NOW)
    assert found.unknown_systems == 3


def test_only_a_block_of_a_whole_provider_needs_a_person() -> None:
    assert _measure(blocks=(_block(),)).blocked_providers == 1
    assert _measure(blocks=(_block(region="EU"),)).blocked_providers == 0
    assert _measure(blocks=(_block(kind="rate_limited"),)).blocked_providers == 0


def test_spend_is_what_providers_bill_above_a_budget() -> None:
    pools = [pool_object(budgetPerHour="3.00")]
    dear = provisioned(node_pool="pool", observation=Seen(cost_per_hour=Decimal("2.50")))
    other = provisioned("other", "i-2", node_pool="pool", observation=Seen(cost_per_hour=Decimal("1.00")))
    assert spend_over_budget(pools, [dear]) == 0
    assert spend_over_budget(pools, [dear, other]) == Decimal("0.50")


def test_pools_without_a_budget_or_a_valid_spec_have_no_overspend() -> None:
    dear = provisioned(node_pool="pool", observation=Seen(cost_per_hour=Decimal("2.50")))
    invalid = pool_object(budgetPerHour="1.00")
    invalid["spec"]["providers"] = "none"
    assert spend_over_budget([pool_object(), invalid], [dear]) == 0


def test_the_sweep_sends_them_and_a_healthy_one_sends_zeros() -> None:
    world = World()
    world.create_pod()
    world.run(2)
    sent = {name for name, value, _ in world.telemetry.metrics if value}
    names = {"OldestGatedPod", "ClaimsOverdue", "PodsUnbound", "SystemsUnknown", "ProvidersBlocked", "SpendOverBudget"}
    assert not sent & names
    assert names <= {name for name, _, _ in world.telemetry.metrics}


def test_an_unreachable_cluster_shows() -> None:
    world = World()
    services = world.services("status_polling")
    seen = Observation({CLUSTER: ClusterView(world.api)}, {}, handled=0, cut_short=False)
    assert report(services, seen, ()).unknown_systems == 1
    assert world.telemetry.total("SystemsUnknown") == 1
