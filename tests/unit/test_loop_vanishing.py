"""More than half of everything gone at once: unknown at first, and believed in the end (decision 0005)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from nebula.domain.claim import Phase, TerminationReason
from nebula.kubernetes.api import ClusterUnavailableError
from nebula.lifecycle.observation import BELIEVED_AFTER
from nebula.providers.errors import ProviderUnavailableError
from nebula.providers.simulated import Call

from tests.support.mischief import all_ended, another_cluster, claims, force_delete, running_pods, said
from tests.support.world import World, running

SWEEPS = int(BELIEVED_AFTER / timedelta(minutes=1))


def _vanished(count: int = 6) -> tuple[World, list[str]]:
    """Every Pod is force-deleted and nobody hears of it; returns the claims' ids."""
    world = World()
    names = running_pods(world, count)
    ids = [claim.claim_id for claim in claims(world)]
    force_delete(world, *names)
    return world, ids


def test_pods_that_vanished_at_once_are_unknown_and_kept_at_first() -> None:
    world, ids = _vanished()
    world.run(SWEEPS)
    assert {claim.phase for claim in claims(world)} == {Phase.RELEASED}
    assert len(world.billed()) == len(ids)
    assert world.telemetry.total("SystemsUnknown") == SWEEPS
    told = said(world, "pods vanished at once")[-1]
    assert (told["missing"], told["of"], set(told["claims"])) == (6, 6, set(ids))


def test_pods_that_stay_gone_are_believed_deleted_and_nothing_is_billed_any_more() -> None:
    world, ids = _vanished()
    world.run(SWEEPS + 3)
    assert world.billed() == []
    assert all_ended(world, ids, TerminationReason.POD_DELETED)
    assert world.committed() == 0


def test_pods_that_come_back_start_the_wait_anew() -> None:
    world, _ = _vanished()
    world.run(1)
    real = world.api.get_pod
    back = {claim.pod_name: claim.pod_uid for claim in claims(world)}

    def found(namespace: str, name: str) -> dict[str, object]:
        meta = {
            "name": name,
            "namespace": namespace,
            "uid": back[name],
            "labels": {"nebula.inftyai.com/enabled": "true"},
        }
        return {"metadata": meta, "spec": {"containers": [{"name": "main"}]}, "status": {}}

    world.api.get_pod = found  # type: ignore[method-assign]
    world.run(1)
    world.api.get_pod = real  # type: ignore[method-assign]
    world.run(SWEEPS)
    assert len(world.billed()) == 6
    world.run(3)
    assert world.billed() == []


def test_another_cluster_under_the_name_is_never_believed() -> None:
    world, ids = _vanished()
    another_cluster(world)
    world.run(SWEEPS * 3)
    assert len(world.billed()) == len(ids)
    assert all(claim.pod_absent_since is None for claim in claims(world))


def test_a_claim_that_is_pinned_to_no_cluster_stays_unknown() -> None:
    world, ids = _vanished()
    for claim in claims(world):
        world.claims.save(claim, claim.model_copy(update={"cluster_uid": ""}))
    world.run(SWEEPS * 3)
    assert len(world.billed()) == len(ids)


def test_an_api_server_that_falls_silent_meanwhile_confirms_nothing() -> None:
    world, ids = _vanished()
    world.run(1)
    real = world.api.get_pod

    def silent(_namespace: str, _name: str) -> None:
        raise ClusterUnavailableError("no answer")

    world.api.get_pod = silent  # type: ignore[method-assign,assignment]
    world.run(SWEEPS * 2)
    assert len(world.billed()) == len(ids)
    world.api.get_pod = real  # type: ignore[method-assign]
    world.run(3)
    assert world.billed() == []


def test_less_than_half_is_ended_in_the_same_sweep() -> None:
    world = World()
    names = running_pods(world, 6)
    force_delete(world, *names[:3])
    world.run(2)
    assert len(world.billed()) == 3
    assert said(world, "pods vanished at once") == []


def test_a_due_pending_claim_whose_pod_is_gone_ends_itself() -> None:
    world = World()
    world.simulated.market.limit(0)
    for number in range(6):
        world.create_pod(f"train-{number}")
    world.pump()
    waiting = claims(world)
    assert {claim.phase for claim in waiting} == {Phase.PENDING}
    force_delete(world, *(claim.pod_name for claim in waiting))
    world.clock.advance(timedelta(minutes=2))
    world.tick()
    world.tick()
    assert all_ended(world, [claim.claim_id for claim in waiting], TerminationReason.POD_DELETED)


def test_a_pending_claim_is_not_ended_by_another_cluster() -> None:
    world = World()
    world.simulated.market.limit(0)
    world.create_pod()
    world.pump()
    force_delete(world, "train")
    another_cluster(world)
    world.clock.advance(timedelta(minutes=2))
    with pytest.raises(ClusterUnavailableError):
        world.tick()
    assert [claim.phase for claim in claims(world)] == [Phase.PENDING]


def _deleted_by_hand(world: World) -> list[str]:
    ids = [claim.claim_id for claim in claims(world)]
    for machine in world.billed():
        world.simulated.console.delete(machine)
    return ids


def test_instances_that_vanished_at_once_keep_their_pods_running_at_first() -> None:
    world = World()
    names = running_pods(world, 6)
    _deleted_by_hand(world)
    world.run(SWEEPS)
    assert {claim.phase for claim in claims(world)} == {Phase.RELEASED}
    assert all(running(world.pod(name)) for name in names)
    assert world.telemetry.total("SystemsUnknown") >= SWEEPS


def test_instances_that_stay_gone_are_believed_lost_after_a_second_read_by_id() -> None:
    world = World()
    names = running_pods(world, 6)
    ids = _deleted_by_hand(world)
    world.simulated.script.counts.clear()
    world.run(SWEEPS + 3)
    assert all_ended(world, ids, TerminationReason.INSTANCE_LOST)
    assert world.simulated.script.counts[Call.GET] == 2 * len(ids)
    assert {(world.pod(name) or {})["status"]["phase"] for name in names} == {"Failed"}


def test_a_provider_that_cannot_be_read_by_id_confirms_no_loss() -> None:
    world = World()
    running_pods(world, 6)
    ids = _deleted_by_hand(world)
    world.simulated.script.fail(Call.GET, ProviderUnavailableError("cut"), times=10_000)
    world.run(SWEEPS * 3)
    assert [claim.phase for claim in claims(world)] == [Phase.RELEASED] * len(ids)


def test_another_account_behind_the_key_confirms_no_loss() -> None:
    world = World()
    running_pods(world, 6)
    ids = _deleted_by_hand(world)
    world.simulated.account_id = "another"
    world.run(SWEEPS * 3)
    assert len(claims(world)) == len(ids)


def test_an_attempt_whose_account_nobody_noted_confirms_no_mass_loss() -> None:
    world = World()
    running_pods(world, 6)
    for claim in claims(world):
        attempts = tuple(a.model_copy(update={"account": ""}) for a in claim.attempts)
        world.claims.save(claim, claim.model_copy(update={"attempts": attempts}))
    ids = _deleted_by_hand(world)
    world.run(SWEEPS * 3)
    assert len(claims(world)) == len(ids)
