"""A cluster's or provider's parameter that goes while claims live: it alarms, holds, and says which claims."""

from __future__ import annotations

from nebula.domain.claim import Phase, TerminationReason
from nebula.providers.errors import NoCapacityError
from nebula.providers.simulated import Call
from nebula.workflows.abandon import abandon

from local.kubernetes.server import Response
from tests.support.mischief import all_ended, claims, running_pods, said
from tests.support.world import CLUSTER, World, running


def _without_cluster(count: int = 2) -> tuple[World, list[str]]:
    """Running Pods; after a minute the cluster's parameter goes."""
    world = World()
    running_pods(world, count)
    world.minute()
    world.telemetry.metrics.clear()
    world.clusters._apis.pop(CLUSTER)
    return world, [claim.claim_id for claim in claims(world)]


def test_a_removed_cluster_alarms_and_names_its_claims_and_instances() -> None:
    world, ids = _without_cluster()
    world.minute()
    assert world.telemetry.total("SystemsUnknown") == 1
    told = said(world, "cluster not configured")[-1]
    assert (told["cluster"], sorted(told["claims"]), told["of"]) == (CLUSTER, sorted(ids), 2)
    assert sorted(told["instances"]) == sorted(world.billed())


def test_nothing_is_reclaimed_while_a_cluster_is_not_configured() -> None:
    world, ids = _without_cluster()
    world.run(30)
    assert len(world.billed()) == 2
    assert {claim.phase for claim in claims(world)} == {Phase.RELEASED}
    assert world.telemetry.total("SystemsUnknown") == 30
    assert sorted(ids) == sorted(claim.claim_id for claim in claims(world))


def test_the_parameter_comes_back_and_all_goes_on() -> None:
    world, _ = _without_cluster()
    world.run(2)
    world.clusters._apis[CLUSTER] = world.api
    world.telemetry.metrics.clear()
    world.minute()
    assert world.telemetry.total("SystemsUnknown") == 0
    world.delete_pod("train-0")
    world.pump()
    world.tick()
    assert len(world.billed()) == 1


def test_a_removed_cluster_without_claims_is_forgotten() -> None:
    world = World()
    world.minute()
    world.clusters._apis.pop(CLUSTER)
    world.minute()
    assert world.telemetry.total("SystemsUnknown") == 0
    assert world.sightings.recall("clusters") == ""


def test_due_claims_of_a_removed_cluster_are_not_announced_to_fail() -> None:
    world = World()
    world.simulated.market.limit(0)
    world.create_pod()
    world.pump()
    world.minute()
    world.clusters._apis.pop(CLUSTER)
    world.publisher.events.clear()
    world.run(10)
    assert world.publisher.events == []
    assert [claim.phase for claim in claims(world)] == [Phase.PENDING]


def test_what_was_to_be_given_back_still_is() -> None:
    world, _ = _without_cluster(1)
    claim = claims(world)[0]
    ending = claim.model_copy(
        update={
            "phase": Phase.TERMINATING,
            "termination_reason": TerminationReason.POD_DELETED,
            "next_action_at": world.clock.now(),
        }
    )
    world.claims.save(claim, ending)
    world.run(2)
    assert world.billed() == []


def test_abandon_ends_the_claims_of_a_cluster_that_will_not_come_back() -> None:
    world, ids = _without_cluster()
    for claim_id in ids:
        abandon(world.services("operator"), claim_id, "the cluster is gone")
    assert all_ended(world, ids, TerminationReason.ABANDONED)
    world.telemetry.metrics.clear()
    world.minute()
    assert world.telemetry.total("SystemsUnknown") == 0


def _without_key() -> tuple[World, list[str], list[str]]:
    world = World()
    names = running_pods(world, 2)
    world.providers.keys.pop("simulated")
    return world, names, [claim.claim_id for claim in claims(world)]


def test_a_provider_without_a_key_alarms_and_names_its_claims() -> None:
    world, _, ids = _without_key()
    world.minute()
    assert world.telemetry.total("SystemsUnknown") == 1
    told = said(world, "provider unknown")[-1]
    assert (told["provider"], sorted(told["claims"]), told["of"]) == ("simulated", sorted(ids), 2)
    assert "no key" in told["error"]


def test_pods_of_a_provider_without_a_key_stay_as_they_are() -> None:
    world, names, ids = _without_key()
    world.run(30)
    assert all(running(world.pod(name)) for name in names)
    assert len(world.billed()) == len(ids)


def test_a_pod_deleted_meanwhile_is_given_back_when_the_key_is_back() -> None:
    world, names, ids = _without_key()
    world.delete_pod(names[0])
    world.pump()
    world.run(20)
    assert len(world.billed()) == 2
    assert Phase.TERMINATING in {claim.phase for claim in claims(world)}
    world.providers.keys["simulated"] = "key-1"
    world.run(2)
    assert len(world.billed()) == 1
    assert len(claims(world)) == len(ids) - 1


def test_another_key_of_another_account_says_nothing_of_what_the_former_made() -> None:
    world = World()
    names = running_pods(world, 2)
    world.simulated.account_id = "another"
    for machine in world.billed():
        world.simulated.console.delete(machine)
    world.run(10)
    assert all(running(world.pod(name)) for name in names)
    assert world.telemetry.total("SystemsUnknown") == 10


def test_a_cluster_that_refuses_us_is_unknown_and_keeps_its_instances() -> None:
    world = World()
    running_pods(world, 2)
    world.emulator.faults.append(lambda _method, _path: Response(403, {}, b"{}"))
    world.run(5)
    assert len(world.billed()) == 2
    assert world.telemetry.total("SystemsUnknown") == 5


def test_a_provider_without_a_key_that_holds_nothing_is_not_unknown() -> None:
    world = World()
    world.create_pod()
    world.simulated.script.fail(Call.PROVISION, NoCapacityError("none left"), times=99)
    world.pump()
    assert (world.claim().phase, len(world.claim().unconfirmed)) == (Phase.PENDING, 0)
    assert world.claim().attempts, "it was asked, and made nothing"
    del world.providers.keys["simulated"]
    world.telemetry.metrics.clear()
    world.run(3)
    assert world.telemetry.total("SystemsUnknown") == 0
    assert world.telemetry.total("ProviderUnknown") == 0
