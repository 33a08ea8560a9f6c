"""Another cluster or account behind a known name: unknown, alarming, and nothing is reclaimed."""

from __future__ import annotations

from datetime import timedelta

from nebula.domain.claim import Phase, TerminationReason
from nebula.kubernetes.api import ForbiddenError
from nebula.providers.errors import ProviderUnavailableError
from nebula.providers.simulated import Call

from tests.support.mischief import all_ended, another_cluster, claims, force_delete, running_pods, said
from tests.support.world import World, running


def test_a_changed_kube_system_uid_is_unknown_and_names_the_claims() -> None:
    world = World()
    running_pods(world, 2)
    ids = {claim.claim_id for claim in claims(world)}
    another_cluster(world)
    world.minute()
    assert world.telemetry.total("SystemsUnknown") == 1
    told = said(world, "cluster unknown")[-1]
    assert "kube-system UID" in told["error"]
    assert set(told["claims"]) == ids


def test_a_single_pod_that_another_cluster_lacks_is_not_given_up() -> None:
    world = World()
    running_pods(world, 1)
    force_delete(world, "train-0")
    another_cluster(world)
    world.run(10)
    assert [claim.phase for claim in claims(world)] == [Phase.RELEASED]
    assert len(world.billed()) == 1


def test_pods_of_the_other_cluster_get_claims_of_their_own() -> None:
    world = World()
    running_pods(world, 1)
    another_cluster(world, "second")
    world.create_pod("newcomer")
    world.pump()
    newcomer = next(claim for claim in claims(world) if claim.pod_name == "newcomer")
    assert newcomer.cluster_uid == "second"
    world.run(2)
    assert running(world.pod("newcomer"))


def test_the_cluster_comes_back_and_its_pods_are_believed_again() -> None:
    world = World()
    running_pods(world, 1)
    known = claims(world)[0].cluster_uid
    another_cluster(world)
    world.run(2)
    another_cluster(world, known)
    force_delete(world, "train-0")
    world.run(2)
    assert world.billed() == []


def test_a_role_that_may_not_read_kube_system_any_more_concludes_nothing_of_a_missing_pod() -> None:
    world = World()
    running_pods(world, 1)

    def forbidden() -> str:
        raise ForbiddenError("403")

    world.api.cluster_uid = forbidden  # type: ignore[method-assign]
    force_delete(world, "train-0")
    world.run(3)
    assert len(world.billed()) == 1
    assert said(world, "claim not ended")


def test_an_account_that_cannot_be_read_is_unknown() -> None:
    world = World()
    names = running_pods(world, 2)
    for machine in world.billed():
        world.simulated.console.delete(machine)
    world.simulated.script.fail(Call.ACCOUNT, ProviderUnavailableError("cut"), times=10_000)
    world.run(5)
    assert all(running(world.pod(name)) for name in names)
    assert world.telemetry.total("SystemsUnknown") == 5


def test_a_delete_is_not_sent_to_another_account() -> None:
    world = World()
    running_pods(world, 1)
    world.simulated.account_id = "another"
    world.simulated.break_listing(shown=0)
    world.simulated.scopes = ("", "us")
    world.simulated.script.counts.clear()
    world.delete_pod("train-0")
    world.pump()
    world.run(3)
    assert world.simulated.script.counts[Call.TERMINATE] == 0
    assert [claim.phase for claim in claims(world)] == [Phase.TERMINATING]


def test_a_new_key_that_shows_our_instance_is_the_same_account() -> None:
    world = World()
    world.simulated.account_id = None
    running_pods(world, 2)
    ids = [claim.claim_id for claim in claims(world)]
    world.providers.keys["simulated"] = "key-2"
    world.minute()
    assert said(world, "provider unknown") == []
    for machine in world.billed():
        world.simulated.console.delete(machine)
    world.run(3)
    assert all_ended(world, ids, TerminationReason.INSTANCE_LOST)


def test_a_new_key_that_shows_nothing_of_ours_is_unknown() -> None:
    world = World()
    world.simulated.account_id = None
    names = running_pods(world, 2)
    for machine in world.billed():
        world.simulated.console.delete(machine)
    world.providers.keys["simulated"] = "key-2"
    world.run(10)
    assert all(running(world.pod(name)) for name in names)
    assert "account or key changed" in said(world, "provider unknown")[-1]["error"]


def test_an_instance_deleted_by_hand_ends_its_claim_as_lost() -> None:
    world = World()
    running_pods(world, 2)
    claim = next(c for c in claims(world) if c.pod_name == "train-0")
    world.simulated.console.delete(str(claim.instance_id))
    world.run(2)
    assert all_ended(world, [claim.claim_id], TerminationReason.INSTANCE_LOST)
    status = (world.pod("train-0") or {})["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "InstanceLost")
    assert running(world.pod("train-1"))


def test_one_absence_is_not_yet_a_loss() -> None:
    world = World()
    running_pods(world, 2)
    world.simulated.console.delete(world.billed()[0])
    world.tick()
    assert {claim.phase for claim in claims(world)} == {Phase.RELEASED}
    world.tick(after=timedelta(seconds=15))
    assert Phase.RELEASED in {claim.phase for claim in claims(world)}
    assert len([claim for claim in claims(world) if claim.phase is Phase.RELEASED]) == 1
