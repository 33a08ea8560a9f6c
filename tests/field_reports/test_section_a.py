"""Field reports A: a create that is lost, late, or made twice (docs/field-reports.md)."""

from __future__ import annotations

from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from nebula.domain.claim import AttemptOutcome, Phase
from nebula.domain.instance import Mark
from nebula.kubernetes.api import ClusterUnavailableError
from nebula.providers.errors import ProviderUnavailableError
from nebula.providers.runpod import marks
from nebula.providers.simulated import Behaviour, Call
from nebula.workflows.orphans import UNCLAIMED_AGE

from local.runpod.faults import Failure
from tests.support.runpod import SXM
from tests.support.runpod_installation import RunPodInstallation
from tests.support.tripwire import CrashError, wired
from tests.support.world import CLUSTER, INSTALLATION, World, running, until_true

NOT_FOUND = "InvalidInstanceID.NotFound: The instance ID 'i-1a2b3c4d' does not exist"


def killed_after_the_create() -> World:
    """The create took effect; the process is dead before anything is written."""
    world = World()
    world.simulated.script.fail(Call.PROVISION, CrashError("SIGKILL"), after=True)
    world.create_pod()
    with pytest.raises(CrashError):
        world.pump()
    assert len(world.billed()) == 1
    assert world.claim().instance_id is None
    return world


def test_a1_killed_between_the_create_and_its_record_it_adopts_instead_of_creating_again() -> None:
    world = killed_after_the_create()
    claim = world.claim()
    assert (claim.phase, claim.attempts[0].number, claim.attempts[0].outcome) == (
        Phase.PROVISIONING,
        1,
        AttemptOutcome.UNKNOWN,
    )
    world.pump(copies=2)
    until_true(world, lambda: running(world.pod()))
    assert world.simulated.script.counts[Call.PROVISION] == 1
    assert world.billed() == [world.claim().instance_id]


def test_a2_the_id_is_in_the_ledger_before_anything_is_read() -> None:
    world = World()
    wire = wired(world)
    world.simulated.script.fail(Call.GET, ProviderUnavailableError(NOT_FOUND), times=3)
    world.simulated.script.fail(Call.FIND, ProviderUnavailableError(NOT_FOUND), times=3)
    world.create_pod()
    world.pump(copies=2)
    created = wire.log.index("simulated.provision")
    assert wire.log[created + 1] == "claims.save"
    assert world.billed() == [world.claim().instance_id]
    world.run(2)
    assert wire.log.count("simulated.provision") == 1
    assert running(world.pod())


def test_a2_a_pod_that_runpod_does_not_know_yet_is_not_bought_twice() -> None:
    world = RunPodInstallation()
    world.account.timing.visible = timedelta(seconds=4)
    world.simulator.fail(Failure(404, "pod not found", method="GET", path="/v2/pods/.*", times=5))
    world.create_pod()
    world.pump(copies=2)
    assert world.alive() == [world.claim().instance_id]
    world.run(2)
    assert len(world.calls("POST", "/v2/pods")) == 1
    assert running(world.pod())


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> World:
    """A provider that knows nothing of a new machine for 50 s, by list or by id, and says so."""
    world = World(visibility_delay=timedelta(seconds=60))
    world.simulated.behaviour = Behaviour(visible_after=timedelta(seconds=50))
    shown_at = world.clock.now() + timedelta(seconds=50)
    read = world.simulated.get
    monkeypatch.setattr(world.simulated, "get", lambda one: read(one) if world.clock.now() >= shown_at else None)
    return world


def test_a3_not_shown_yet_is_not_gone(slow: World) -> None:
    world = slow
    world.create_pod()
    world.pump()
    made = world.claim().instance_id
    assert made not in [one.id for one in world.simulated.list_instances().instances]
    world.run(3)
    assert world.claim().phase is Phase.RELEASED
    assert (world.claim().instance_id, world.claim().attempts[0].absent_since) == (made, None)
    assert world.simulated.script.counts[Call.PROVISION] == 1


def test_a3_not_shown_yet_is_not_never_made_either(slow: World) -> None:
    """The create's answer was lost and the Pod leaves at once: its claim ends after the machine, not before."""
    world = slow
    world.simulated.script.fail(Call.PROVISION, ProviderUnavailableError("read timeout"), after=True)
    world.create_pod()
    world.pump()
    claim_id = world.claim().claim_id
    world.delete_pod()
    world.pump()
    ended: list[bool] = []
    for _ in range(24):
        world.tick()
        claim = world.claims.get(claim_id)
        assert claim is not None
        ended.append(claim.phase is Phase.TERMINATED)
        assert not (ended[-1] and world.billed())
    assert ended[-1]


def test_a4_the_mark_is_in_the_create_itself_and_no_second_call_names_the_machine() -> None:
    world = RunPodInstallation()
    world.simulator.fail(Failure(404, "pod not found", path="/v2/pods/.+", times=50))
    world.create_pod()
    world.pump()
    claim = world.claim()
    assert world.created()["env"] == {
        marks.INSTALLATION: INSTALLATION,
        marks.CLAIM: claim.claim_id,
        marks.ATTEMPT: "1",
    }
    writes = [one.path for one in world.account.requests if one.method not in ("GET", "HEAD")]
    assert writes == ["/v2/pods"]
    found = world.providers.get("runpod").find(claim.mark(INSTALLATION))
    assert found is not None
    assert found.id == claim.instance_id


def test_a5_the_reaper_goes_by_the_mark_and_never_by_a_name() -> None:
    world = RunPodInstallation()
    world.create_pod()
    world.pump()
    content: dict[str, Any] = {"image": "x", "disk": 1, "gpu": {"id": SXM}}
    lost = Mark(installation=INSTALLATION, claim_id="f" * 32, attempt=1)
    unnamed = world.account.create_pod({**content, "name": "-", "env": marks.as_environment(lost)})
    namesake = world.account.create_pod({**content, "name": world.created()["name"], "env": {}})
    world.clock.advance(UNCLAIMED_AGE)
    world.run(3)
    kept = world.claim().instance_id
    assert sorted(world.alive()) == sorted([str(kept), namesake.id])
    assert unnamed.terminated_at is not None
    assert world.telemetry.total("OrphanInstances") > 0


def test_a6_a_machine_whose_maker_died_is_managed_although_its_event_is_lost() -> None:
    world = killed_after_the_create()
    world.queue.clear()
    world.run(6)
    claim, pod = world.claim(), world.pod()
    assert claim.phase is Phase.RELEASED
    assert pod is not None
    assert pod["metadata"]["annotations"]["nebula.inftyai.com/instance-id"] == world.billed()[0]
    assert running(pod)
    assert world.simulated.script.counts[Call.PROVISION] == 1
    world.delete_pod()
    world.pump()
    world.run(2)
    assert world.billed() == []


def test_a7_a_step_that_fails_after_a_tenth_of_many_creates_leaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    names = [f"train-{number:03}" for number in range(60)]
    unlucky = set(names[::10])
    real = world.api.patch_pod

    def patch(namespace: str, name: str, body: Any, **more: Any) -> Any:
        if name in unlucky:
            unlucky.remove(name)
            raise ClusterUnavailableError("connection reset")
        return real(namespace, name, body, **more)

    monkeypatch.setattr(world.api, "patch_pod", patch)
    number = count()
    lost = ProviderUnavailableError("connection reset")
    world.simulated.script.fail(Call.PROVISION, lost, times=6, after=True, matches=lambda _: next(number) % 10 == 0)
    for name in names:
        world.create_pod(name)
    for _ in range(20):
        try:
            world.pump(limit=5000)
        except ClusterUnavailableError:
            continue
        break
    world.run(6)
    assert unlucky == set()
    assert all(running(world.pod(name)) for name in names)
    assert sorted(world.billed()) == sorted(str(world.claim(name).instance_id) for name in names)

    for name in names:
        world.delete_pod(name)
    world.pump(limit=5000)
    world.run(3)
    assert world.billed() == []
    assert list(world.claims.live(CLUSTER)) == []
