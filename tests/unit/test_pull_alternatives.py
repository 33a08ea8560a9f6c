"""Several pull Secrets match one image: the next one is tried when the provider says that the pull was refused."""

from __future__ import annotations

import contextlib

import pytest
from nebula.domain.claim import AttemptOutcome, Claim, Phase
from nebula.domain.credential import Credential, CredentialKey
from nebula.providers.errors import ImagePullError, NoCapacityError, ProviderError, ProviderUnavailableError
from nebula.providers.simulated import Call
from nebula.workflows.image_wait import FIRST_PAUSE, image_pause
from nebula.workflows.pull_choice import MAX_TRIED

from local.runpod.faults import Failure
from tests.support.lending import REGISTRY, docker_config, pull_secret
from tests.support.mischief import claims
from tests.support.runpod_installation import RunPodInstallation, put_secret, with_image
from tests.support.tripwire import CrashError, wired
from tests.support.world import World, running

IMAGE = f"{REGISTRY}/team/train:1"
REFUSED = ImagePullError("400: registry unauthorized: could not pull image")


def _world(*passwords: str, world: World | None = None) -> World:
    """A Pod with one pull Secret per password, in this order; nothing has happened yet."""
    made = world or World()
    names = []
    for number, password in enumerate(passwords):
        names.append(f"login-{number}")
        put_secret(made, names[-1], pull_secret(docker_config((REGISTRY, "canary-user", password))))
    made.create_pod(**with_image(IMAGE, *names))
    return made


def _refuse(world: World, times: int, error: ProviderError = REFUSED) -> None:
    world.simulated.script.fail(Call.PROVISION, error, times=times)


def _claim(world: World) -> Claim:
    (claim,) = claims(world)
    return claim


def _rows(world: World) -> list[Credential]:
    return sorted(world.credentials.all(include_retired=True), key=lambda row: row.sources)


def _used(world: World) -> str | None:
    """The Secret whose password the only machine was pulled with."""
    (machine,) = world.simulated.console.owned()
    (row,) = [row for row in _rows(world) if row.provider_id == machine.registry_credential_id]
    return row.sources[0].rpartition("/")[2]


def test_the_next_matching_secret_is_tried_when_the_image_is_refused_with_the_first() -> None:
    world = _world("stale", "good")
    _refuse(world, 1)
    world.pump()
    claim = _claim(world)
    assert [one.outcome for one in claim.attempts] == [AttemptOutcome.REFUSED, AttemptOutcome.CREATED]
    assert "login-0" in claim.attempts[0].detail
    assert _used(world) == "login-1"
    world.run(1)
    assert running(world.pod())


def test_the_ledger_knows_both_and_the_claim_carries_the_one_in_use() -> None:
    world = _world("stale", "good")
    _refuse(world, 1)
    world.pump()
    first, second = _rows(world)
    assert _claim(world).credential_key == str(second.key)
    assert world.claims.find_by_credential(str(first.key)) == [], "so that the refused one goes on time"
    assert [row.provider_id is not None for row in (first, second)] == [True, True]


def test_when_all_are_refused_the_pod_waits_and_the_next_try_begins_with_the_first() -> None:
    world = _world("stale", "staler")
    _refuse(world, 3)
    world.pump()
    claim = _claim(world)
    assert (claim.phase, claim.reason, claim.refused_pulls) == (Phase.PENDING, "ImagePull", ())
    assert [one.outcome for one in claim.attempts] == [AttemptOutcome.REFUSED] * 2
    assert image_pause(claim) == FIRST_PAUSE, "one wait, not one per credential"
    world.clock.advance(FIRST_PAUSE)
    world.run(1)
    assert _used(world) == "login-1", "the third refusal was the first Secret's"


def test_the_same_password_twice_is_tried_once_and_many_are_bounded() -> None:
    world = _world("same", "same")
    _refuse(world, 9)
    world.pump()
    assert len(_claim(world).attempts) == 1
    many = _world(*(f"p{number}" for number in range(MAX_TRIED + 3)))
    _refuse(many, 99)
    many.pump()
    assert len(_claim(many).attempts) == MAX_TRIED


@pytest.mark.parametrize("error", [NoCapacityError("none"), ProviderUnavailableError("gateway timeout")])
def test_only_a_refused_image_speaks_against_a_credential(error: ProviderError) -> None:
    world = _world("good", "other")
    _refuse(world, 1, error)
    world.pump()
    assert _claim(world).refused_pulls == ()
    assert [row.sources[0] for row in _rows(world)] == ["test/default/login-0"]


def test_an_anonymous_pull_that_is_refused_has_no_next() -> None:
    world = _world()
    _refuse(world, 1)
    world.pump()
    assert (_claim(world).phase, len(_claim(world).attempts)) == (Phase.PENDING, 1)


def test_an_expired_password_is_passed_over_while_another_matches() -> None:
    world = _world("x", "good")
    pull_first = world.credentials
    world.pump()
    assert len(list(pull_first.all())) == 1
    row = next(iter(pull_first.all()))
    pull_first.save(row, row.model_copy(update={"expires_at": world.clock.now()}))
    world.create_pod("second", **with_image(IMAGE, "login-0", "login-1"))
    world.pump()
    used = {claim.pod_name: claim.credential_key or "" for claim in claims(world)}
    sources = {str(row.key): row.sources[0] for row in _rows(world)}
    assert sources[used["second"]].endswith("login-1")


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_anywhere_on_the_way_to_the_next_secret_ends_with_one_machine(after: bool) -> None:
    for step in range(1, 30):
        world = _world("stale", "good")
        _refuse(world, 1)
        wire = wired(world)
        wire.arm(step, after=after)
        with contextlib.suppress(CrashError):
            world.pump()
        wire.disarm()
        for _ in range(4):
            world.clock.advance(FIRST_PAUSE)
            world.run(1)
        assert len(world.simulated.console.owned()) == 1, step
        key = CredentialKey.parse(_claim(world).credential_key or "")
        assert world.credentials.get(key) is not None, step


def test_runpod_says_so_at_the_create_where_it_says_so_at_all() -> None:
    world = RunPodInstallation()
    world.account.images.private = {IMAGE: ("canary-user", "good")}
    _world("stale", "good", world=world)
    world.simulator.fail(Failure(method="POST", path="/v2/pods", status=422, detail="pull access denied for x"))
    world.pump()
    world.run(2)
    first, second = world.calls("POST", "/v2/pods")
    assert first["registry"] != second["registry"]
    assert running(world.pod())
