"""A thousand claims while a tenth of all calls fails, in every way: one instance per live Pod is left.

Four providers of two scopes each, 180 Pod names that come, go and come back, instances that end by themselves.
``tests/support/chaos.py`` lists the ways to fail, ``tests/support/storm.py`` what happens meanwhile. The same seed
makes the same choices; credentials have a property test of their own.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from nebula.domain.claim import Phase
from nebula.domain.instance import InstanceListing
from nebula.kubernetes.names import ANNOTATION_INSTANCE_ID, CONDITION_RELEASED

from local.kubernetes.resources import EVENTS
from tests.support.chaos import CRASHES, WAYS
from tests.support.storm import CANARY, Storm, seeded_uids
from tests.support.world import CLUSTER, running

CLAIMS = 1000
NAMES = [f"train-{number:03}" for number in range(180)]
#: USD per hour: room for all Pods, and for little of what is bought in vain.
BUDGET = Decimal(4) * 200
#: Two sweeps, and one more for the provider's own delay of 36 s.
SWEEPS = 3
#: Minutes: what a Pod that was refused everywhere waits (ten), and the ticks around it.
LONGEST_HOLD = 15


@pytest.mark.parametrize("seed", [1, 2])
def test_a_thousand_claims_end_with_one_instance_per_live_pod(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uuid, "uuid4", seeded_uids(seed))
    storm = Storm(seed, budget=BUDGET)
    while len(storm.claims()) < CLAIMS:
        _round(storm)
        assert storm.committed() <= BUDGET
        assert all(one in storm.living() for one in storm.foreign)
    assert not _never_happened(storm)

    storm.calm()
    for _ in range(SWEEPS):
        storm.minute()
    assert storm.doubles() == []
    assert storm.strays() == []
    _let_holds_run_out(storm)
    _one_instance_per_live_pod(storm)
    _nothing_secret_was_said(storm)
    _silence_changes_nothing(storm, monkeypatch)
    _every_gated_pod_says_why(storm)
    assert all(one in storm.living() for one in storm.foreign)


def _round(storm: Storm) -> None:
    """A minute in which people, owners and providers do what they do."""
    ended = [p["metadata"]["name"] for p in storm.pods() if p["status"].get("phase") in ("Succeeded", "Failed")]
    unlucky = storm.random.sample(NAMES, 35)
    storm.delete([*ended, *unlucky])
    if storm.random.random() < 0.5:
        storm.create(unlucky)
    storm.deliver(2)
    storm.create(storm.random.sample(NAMES, 150))
    storm.end_instances(2)
    storm.tamper_with_lists()
    storm.minute()


def _never_happened(storm: Storm) -> set[str]:
    """What this was to be a test of and did not do."""
    ways = {way.name for methods in WAYS.values() for ways in methods.values() for way in ways}
    ways |= {way.name for way in CRASHES} | {"read 429", "read dropped", "write 409", "write unanswered"}
    events = {"lost", "twice", "late"}
    acts = {"created", "deleted", "partial list"} | {
        f"instance {how}" for how in ("exit", "fail", "delete", "interrupt")
    }
    missing = ways - storm.chaos.injected.keys() | events - storm.tally.events.keys() | acts - storm.tally.acts.keys()
    claims = storm.claims()
    if not any(len(claim.attempts) > 1 for claim in claims):
        missing.add("a second attempt")
    if max(Counter(claim.pod_name for claim in claims).values()) < 3:
        missing.add("a name used again and again")
    return missing


def _let_holds_run_out(storm: Storm) -> None:
    """A Pod that every candidate refused asks them again after ten minutes; the others are there long before."""
    for minute in range(LONGEST_HOLD):
        storm.minute()
        if minute >= SWEEPS and all(claim.phase is Phase.RELEASED for claim in storm.claims() if claim.live):
            return


def _one_instance_per_live_pod(storm: Storm) -> None:
    claims = {claim.claim_id: claim for claim in storm.claims()}
    alive = [claim for claim in claims.values() if claim.live]
    assert {claim.phase for claim in alive} == {Phase.RELEASED}
    assert storm.billed() == {claim.instance_id: claim.claim_id for claim in alive}
    pods = [pod for pod in storm.pods() if pod["status"].get("phase") not in ("Succeeded", "Failed")]
    assert len(pods) == len(storm.billed()) > 100
    by_uid = {claim.pod_uid: claim for claim in alive}
    for pod in pods:
        assert running(pod), pod["status"]
        claim = by_uid[pod["metadata"]["uid"]]
        assert pod["metadata"]["annotations"][ANNOTATION_INSTANCE_ID] == claim.instance_id
    assert all(not claim.unconfirmed for claim in claims.values() if claim.phase is Phase.TERMINATED)
    assert storm.committed() == sum(claim.committed_per_hour for claim in alive) <= BUDGET


def _nothing_secret_was_said(storm: Storm) -> None:
    world = storm.world
    said = [repr(world.telemetry.lines), repr(world.telemetry.metrics), repr(world.publisher.events)]
    said += [claim.model_dump_json() for claim in storm.claims()]
    said += [repr((pod["metadata"], pod["status"])) for pod in storm.pods()]
    said += [repr(record.object) for record in world.emulator.store.records(EVENTS)]
    assert not any(CANARY in text for text in said)


def _silence_changes_nothing(storm: Storm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another account that is empty, then another cluster that is: neither is an absence."""
    before = storm.billed()
    with monkeypatch.context() as elsewhere:
        for provider in storm.simulated:
            elsewhere.setattr(provider, "account", lambda: "somebody-elses")
            elsewhere.setattr(provider, "list_instances", lambda: _empty(storm.world.clock.now()))
            elsewhere.setattr(provider, "get", lambda _: None)
        for _ in range(SWEEPS):
            storm.minute()
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(storm.world.api, "cluster_uid", lambda: "another-cluster")
        elsewhere.setattr(storm.world.api, "list_pods", lambda **_: [])
        elsewhere.setattr(storm.world.api, "get_pod", lambda *_: None)
        for _ in range(SWEEPS):
            storm.minute()
    storm.minute()
    assert storm.billed() == before
    _one_instance_per_live_pod(storm)


def _empty(now: datetime) -> InstanceListing:
    return InstanceListing(began_at=now, complete_scopes=frozenset(("east", "west")))


def _every_gated_pod_says_why(storm: Storm) -> None:
    """Sold out everywhere: each new Pod shows the reason of its last decision within a tick."""
    for provider in storm.simulated:
        provider.market.limit(0)
    names = [f"late-{number}" for number in range(20)]
    storm.create(names)
    storm.deliver()
    storm.world.tick(after=timedelta(seconds=15), pump=False)
    for name in names:
        assert list(_reasons(storm.world.pod(name))), name
        assert storm.world.claim(name).cluster == CLUSTER


def _reasons(pod: dict[str, Any] | None) -> Iterator[str]:
    assert pod is not None
    for condition in pod["status"].get("conditions", []):
        if condition["type"] == CONDITION_RELEASED and condition["status"] == "False":
            yield from filter(None, [condition["reason"]])
