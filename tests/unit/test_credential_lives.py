"""Credentials beside the lives of Pods, through the real workflows: shared, rotated, left by a failed create."""

from __future__ import annotations

from datetime import timedelta

import pytest
from nebula.credentials.policy import RetirementPolicies, RetirementPolicy
from nebula.domain.claim import Phase
from nebula.domain.credential import CredentialState
from nebula.providers.errors import NoCapacityError, ProviderError, ProviderUnavailableError
from nebula.providers.simulated import Call
from nebula.workflows.retire import retire_credentials

from tests.support.lending import PASSWORD, REGISTRY, USER
from tests.support.pods import events_of
from tests.support.runpod_installation import put_login, with_image
from tests.support.world import World, pool_object, running

IMAGE = f"{REGISTRY}/team/train:1"
SECRET_PATH = "/api/v1/namespaces/default/secrets/login"
HOUR = timedelta(hours=1)
AT_ONCE = RetirementPolicies(
    default=RetirementPolicy(unused_after=timedelta(0), superseded_after=timedelta(0), grace=timedelta(0))
)
WEEK = RetirementPolicies(
    default=RetirementPolicy(unused_after=timedelta(days=7), superseded_after=HOUR, grace=timedelta(minutes=10))
)


@pytest.fixture
def world() -> World:
    """A cluster with one pull Secret, whose password is the canary with ``-0``."""
    made = World()
    put_login(made, (REGISTRY, USER, f"{PASSWORD}-0"))
    return made


def _start(world: World, name: str) -> None:
    world.create_pod(name, **with_image(IMAGE, "login"))
    world.pump()
    world.run(1)


def _end(world: World, name: str) -> None:
    world.delete_pod(name)
    world.pump()
    world.run(2)
    assert world.pod(name) is None


def _rotate(world: World, password: str) -> None:
    world.emulator.handle("DELETE", SECRET_PATH, {}, {})
    put_login(world, (REGISTRY, USER, password))


def _retire(world: World, policies: RetirementPolicies = AT_ONCE) -> None:
    retire_credentials(world.services("credential_retirement"), policies)
    world.clock.advance(HOUR)


def _objects(world: World) -> list[str]:
    """Names of what lies at the provider."""
    return sorted(found.name for found in world.simulated._objects.values())


def _used(world: World) -> set[str | None]:
    """Ids of what machines were pulled with."""
    return {machine.registry_credential_id for machine in world.simulated.console.owned()}


def test_the_end_of_a_pod_never_deletes_a_credential_that_another_one_uses(world: World) -> None:
    _start(world, "one")
    _start(world, "two")
    assert len(_used(world)) == 1, "the same password is one credential"
    _end(world, "one")
    _retire(world)
    assert world.simulated.script.counts[Call.REGISTRY_DELETE] == 0
    assert running(world.pod("two"))
    _end(world, "two")
    assert len(_objects(world)) == 1, "not even the last one's end deletes it: the retirement does"
    _retire(world)
    assert _objects(world) == []


def test_three_rotations_while_workloads_live_leave_exactly_the_credentials_in_use(world: World) -> None:
    for number in range(4):
        _rotate(world, f"{PASSWORD}-{number}")
        _start(world, f"pod-{number}")
        _retire(world)
    assert len(_objects(world)) == 4
    for ended in ("pod-0", "pod-2"):
        _end(world, ended)
    _retire(world)
    in_use = {world.claim(name).credential_key or "" for name in ("pod-1", "pod-3")}
    named = {row.key.object_name for row in world.credentials.all() if str(row.key) in in_use}
    assert set(_objects(world)) == named
    assert len(named) == 2
    states = [row.state for row in world.credentials.all(include_retired=True)]
    assert sorted(states) == sorted(
        [CredentialState.SUPERSEDED, CredentialState.ACTIVE, CredentialState.RETIRED, CredentialState.RETIRED]
    )


@pytest.mark.parametrize("error", [NoCapacityError("none left"), ProviderUnavailableError("gateway timeout")])
def test_a_failed_create_leaves_a_credential_that_is_retired_on_time(world: World, error: ProviderError) -> None:
    world.simulated.script.fail(Call.PROVISION, error, times=99)
    _start(world, "never")
    assert len(_objects(world)) == 1
    _end(world, "never")
    world.clock.advance(timedelta(days=6))
    _retire(world, WEEK)
    assert len(_objects(world)) == 1, "not before its time"
    world.clock.advance(timedelta(days=1))
    _retire(world, WEEK)
    assert _objects(world) == []


def test_a_pod_that_only_waits_keeps_no_credential_at_the_provider() -> None:
    world = World(pool=pool_object(failover={"blocklistTTL": "2h"}))
    put_login(world, (REGISTRY, USER, f"{PASSWORD}-0"))
    world.simulated.script.fail(Call.PROVISION, NoCapacityError("none left"), times=1)
    _start(world, "waits")
    assert world.claim("waits").phase is Phase.PENDING
    assert len(_objects(world)) == 1
    _rotate(world, f"{PASSWORD}-1")
    _retire(world)
    assert _objects(world) == [], "the superseded password lies there for nobody"
    _retire(world)
    world.run(70)
    _retire(world)
    assert running(world.pod("waits"))
    assert len(_objects(world)) == 1
    assert len(_used(world)) == 1


def test_no_secret_is_said_on_the_way(world: World) -> None:
    world.simulated.script.fail(Call.PROVISION, NoCapacityError("none left"))
    for number in range(2):
        _rotate(world, f"{PASSWORD}-{number}")
        _start(world, f"pod-{number}")
        _retire(world)
    said = [world.telemetry, world.publisher.events, world.pod("pod-0"), world.pod("pod-1")]
    kept = [*world.credentials.all(include_retired=True), *world.claims.all(), *events_of(world.emulator, "default")]
    text = repr(said) + "".join(one if isinstance(one, str) else str(one) for one in kept)
    assert "nebula" in text
    assert PASSWORD not in text
    assert USER not in text
