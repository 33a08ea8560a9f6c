"""One claim, mark, Pod, NodePool, cluster or provider that cannot be read costs nobody else the loop."""

from __future__ import annotations

from typing import Any

import pytest
from nebula.domain.claim import TerminationReason, claim_id_for, is_claim_id
from nebula.domain.instance import Mark
from nebula.providers.simulated import DEFAULT_CAPABILITIES, SimulatedProvider
from nebula.workflows import sweep as sweep_module

from local.kubernetes.adapter import client
from local.kubernetes.server import Emulator
from tests.support.mischief import all_ended, claims, force_delete, remark, running_pods
from tests.support.world import CLUSTER, INSTALLATION, FixedClusters, World, running


def odd(*_: Any, **__: Any) -> Any:
    raise TypeError("unlike anything known")


def test_a_claim_id_is_told_from_anything_else() -> None:
    assert is_claim_id(claim_id_for(CLUSTER, "u"))
    for text in ("", "x" * 3000, "budget/test/pool", "A" * 32, "g" * 32, "0" * 31, "0" * 33):
        assert not is_claim_id(text)


@pytest.mark.parametrize("name", ["budget/test/pool", "x" * 3000])
def test_the_ledger_is_never_asked_for_a_mark_that_names_no_claim(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """DynamoDB refuses the long one as a key, and has a row of another kind under the other."""
    world = World()
    running_pods(world, 1)
    asked: list[str] = []
    real = world.claims.get

    def watched(claim_id: str) -> Any:
        asked.append(claim_id)
        return real(claim_id)

    monkeypatch.setattr(world.claims, "get", watched)
    (instance_id,) = world.billed()
    remark(world, instance_id, mark=Mark(installation=INSTALLATION, claim_id=name, attempt=1))
    world.minute()
    assert name not in asked


def test_a_provider_whose_answers_cannot_be_read_is_unknown_and_the_other_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    bad = SimulatedProvider(world.clock, name="other", capabilities=DEFAULT_CAPABILITIES)
    world.providers._providers["other"] = bad
    world.providers.keys["other"] = "key-1"
    monkeypatch.setattr(bad, "list_instances", odd)
    names = running_pods(world, 2)
    world.delete_pod(names[0])
    world.pump()
    world.run(2)
    assert world.pod(names[0]) is None
    assert running(world.pod(names[1]))
    assert len(world.billed()) == 1
    assert world.telemetry.total("SystemsUnknown") > 0
    assert world.telemetry.total("Defects") > 0


def test_a_cluster_whose_answers_cannot_be_read_is_unknown_and_the_other_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    bad = client(Emulator(clock=world.clock), "another")
    monkeypatch.setattr(bad, "list_pods", lambda **_: [{"metadata": 7}, None])
    world.clusters = FixedClusters(bad, world.api)
    names = running_pods(world, 2)
    force_delete(world, names[0])
    world.run(3)
    assert running(world.pod(names[1]))
    assert len(world.billed()) == 1
    assert world.telemetry.total("SystemsUnknown") > 0


def test_a_claim_that_cannot_be_ended_keeps_no_other_from_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    names = running_pods(world, 4)
    ids = [claim.claim_id for claim in sorted(claims(world), key=lambda claim: claim.pod_name)]
    real = world.api.get_pod
    monkeypatch.setattr(world.api, "get_pod", lambda space, name: odd() if name == names[0] else real(space, name))
    force_delete(world, names[0], names[1])
    world.run(3)
    assert all_ended(world, ids[1:2], TerminationReason.POD_DELETED)
    assert world.telemetry.total("Defects") > 0
    monkeypatch.undo()
    world.run(2)
    assert all_ended(world, ids[:2], TerminationReason.POD_DELETED)


def test_an_odd_pod_costs_its_cluster_s_housekeeping_and_not_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    running_pods(world, 1)
    monkeypatch.setattr(sweep_module, "warn_of_edits", odd)
    world.minute()
    assert [line for line in world.telemetry.lines if line[1] == "sweep failed"]
    assert [line for line in world.telemetry.lines if line[1] == "swept"]
    assert world.telemetry.total("Defects") == 1
