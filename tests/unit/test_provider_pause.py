"""A throttle pauses the provider for everyone, and says nothing about any request (docs/placement.md)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from nebula.domain.claim import Phase
from nebula.kubernetes.api import ClusterUnavailableError
from nebula.placement.blocklist import LONGEST_PAUSE
from nebula.providers.errors import ProviderUnavailableError, RateLimitedError
from nebula.providers.simulated import Call

from local.kubernetes.resources import SECRETS
from tests.support.lending import docker_config, pull_secret
from tests.support.mischief import said
from tests.support.placements import placed_only, released
from tests.support.placing import block
from tests.support.world import World


def test_one_pods_throttle_keeps_every_other_pod_from_asking() -> None:
    world = World()
    for name in ("a", "b", "c"):
        world.create_pod(name)
    throttle = RateLimitedError("slow down", retry_after=timedelta(seconds=40))
    world.simulated.script.fail(Call.PROVISION, throttle)
    world.pump()
    assert world.simulated.script.counts[Call.PROVISION] == 1
    assert {world.claim(name).phase for name in ("a", "b", "c")} <= {Phase.PLACED, Phase.PENDING}

    world.run(3)
    assert {world.claim(name).phase for name in ("a", "b", "c")} == {Phase.RELEASED}
    assert world.simulated.script.counts[Call.PROVISION] == 4


def test_a_retry_after_of_a_day_is_believed_no_longer_than_the_providers_pause() -> None:
    world = World()
    world.create_pod("a")
    throttle = RateLimitedError("come back tomorrow", retry_after=timedelta(days=1))
    world.simulated.script.fail(Call.PROVISION, throttle)
    world.pump()
    claim = world.claim("a")
    assert claim.phase is Phase.PLACED
    assert claim.next_action_at == world.clock.now() + LONGEST_PAUSE
    world.run(17)
    assert world.claim("a").phase is Phase.RELEASED


def test_pods_behind_a_pause_say_so_and_not_what_they_waited_for_before() -> None:
    world = World()
    for name in ("a", "b"):
        world.create_pod(name)
    world.simulated.script.fail(Call.PROVISION, RateLimitedError("slow down", retry_after=timedelta(minutes=14)))
    world.pump()
    waiting = next(name for name in ("a", "b") if "slow down" not in released(world, name)["message"])
    assert released(world, waiting)["reason"] == "RateLimited"
    assert released(world, waiting)["message"] == (
        "simulated throttles this account: no create for any Pod before 2026-11-01T12:14Z"
    )
    told = world.pod(waiting)
    world.run(10)
    assert world.pod(waiting) == told, "said once, while it is so"
    assert (world.claim(waiting).phase, world.claim(waiting).reason) == (Phase.PLACED, "RateLimited")


def test_a_pause_that_a_pod_cannot_be_told_of_is_kept_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    placed_only(world)
    until = world.clock.now() + timedelta(minutes=2)
    world.blocks.put(block("simulated", kind="rate_limited", created_at=world.clock.now(), expires_at=until))
    odd = {"metadata": {"name": "train", "uid": "u", "namespace": "default"}, "spec": {"containers": "x"}}
    with monkeypatch.context() as broken:
        broken.setattr(world.api, "get_pod", lambda *_: odd)
        world.pump()
    assert (world.claim().phase, world.claim().next_action_at) == (Phase.PLACED, until)
    assert said(world, "pod not told")


def test_a_pause_that_no_cluster_hears_of_is_kept_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    placed_only(world)
    until = world.clock.now() + timedelta(minutes=2)
    world.blocks.put(block("simulated", kind="rate_limited", created_at=world.clock.now(), expires_at=until))

    def silent(namespace: str, name: str) -> None:
        raise ClusterUnavailableError(f"{namespace}/{name}: no answer")

    with monkeypatch.context() as broken:
        broken.setattr(world.api, "get_pod", silent)
        world.pump()
    assert (world.claim().phase, world.claim().next_action_at) == (Phase.PLACED, until)
    assert said(world, "pod not told")
    assert world.simulated.script.counts[Call.PROVISION] == 0


def test_a_provider_that_is_silent_before_a_create_is_named_on_the_pod() -> None:
    world = World()
    login = pull_secret(docker_config(("registry.example.com", "user", "word")))
    world.emulator.create(SECRETS, "default", {**login, "metadata": {"name": "login"}})
    world.simulated.script.fail(Call.REGISTRY_ENSURE, ProviderUnavailableError("gateway timeout"))
    world.create_pod(imagePullSecrets=[{"name": "login"}])
    world.pump()
    assert world.claim().phase is Phase.PLACED
    assert released(world)["reason"] == "ProviderUnavailable"
    assert "did not answer before anything was asked for: gateway timeout" in released(world)["message"]
    world.run(2)
    assert world.claim().phase is Phase.RELEASED
