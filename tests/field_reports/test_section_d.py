"""Field reports, section D: registry credentials and images."""

from __future__ import annotations

from datetime import timedelta
from typing import cast

import pytest
from nebula.credentials.policy import RetirementPolicies, RetirementPolicy
from nebula.domain.claim import Phase, TerminationReason
from nebula.kubernetes.api import KubernetesApi
from nebula.kubernetes.pull_secrets import PullLookup, find_pull_credential
from nebula.workflows.retire import retire_credentials

from tests.support.lending import SecretsApi, docker_config, pod, pull_secret
from tests.support.runpod_installation import (
    PASSWORD,
    REGISTRY,
    USER,
    RunPodInstallation,
    condition,
    events,
    put_login,
    with_image,
)
from tests.support.world import running, until_true

IMAGE = f"{REGISTRY}/team/train:1"
ECR = "123456789012.dkr.ecr.eu-central-1.amazonaws.com"
POLICY = RetirementPolicy(
    unused_after=timedelta(days=7), superseded_after=timedelta(hours=1), grace=timedelta(minutes=10)
)


def _lookup(image: str, *keys: tuple[str, str]) -> PullLookup:
    """What one Secret with (key, password) entries yields for an image."""
    api = SecretsApi()
    api.secrets["default", "login"] = pull_secret(docker_config(*((key, "u", password) for key, password in keys)))
    return find_pull_credential(cast("KubernetesApi", api), pod("login"), image)


def _password(found: PullLookup) -> str:
    return "" if found.credential is None else found.credential.password.get_secret_value()


def test_d1_the_credential_is_in_the_create_and_minutes_of_no_basic_auth_credentials_are_waited_for() -> None:
    world = RunPodInstallation()
    world.account.images.private = {IMAGE: (USER, "not-that-password")}
    put_login(world)
    world.create_pod(**with_image(IMAGE, "login"))
    world.pump()
    (lent,) = world.account.registries.list()
    assert world.created()["registry"] == lent["id"]
    world.run(10)
    shown = world.pod()
    assert shown is not None
    assert shown["status"]["phase"] == "Pending"
    assert world.claim().phase is Phase.RELEASED
    assert len(world.alive()) == 1


def test_d2_no_pod_is_ever_updated_so_no_partial_body_can_add_a_volume_without_a_path() -> None:
    world = RunPodInstallation()
    put_login(world)
    world.create_pod(**with_image(IMAGE, "login"))
    world.pump()
    world.run(2)
    assert running(world.pod())
    world.delete_pod()
    world.pump()
    world.run(1)
    assert world.alive() == []
    methods = {one.method for one in world.account.requests if one.path.startswith("/v2/pods")}
    assert methods == {"GET", "POST", "DELETE"}
    assert not {"mounts", "volume", "volumeInGb", "networkVolumeId"} & set(world.created())


def test_d3_a_pull_secret_is_mirrored_to_runpod_and_taken_back_when_unused() -> None:
    world = RunPodInstallation()
    put_login(world)
    world.create_pod(**with_image(IMAGE, "login"))
    world.pump()
    world.run(1)
    (lent,) = world.account.registries.list()
    assert world.account.registries.login(lent["id"]) == (USER, PASSWORD)
    assert running(world.pod())
    world.delete_pod()
    world.pump()
    world.run(2)
    world.clock.advance(timedelta(days=8))
    for _ in range(3):
        retire_credentials(world.services("credential_retirement"), RetirementPolicies(default=POLICY))
        world.clock.advance(timedelta(hours=1))
    assert world.account.registries.list() == []


@pytest.mark.parametrize(
    ("image", "password"),
    [
        ("gitlab.com:443/group/app:1", "with-port"),
        ("gitlab.com/group/app:1", "without-port"),
        ("gitlab.com:5050/group/app:1", ""),
    ],
)
def test_d4_the_port_of_gitlab_com_443_is_kept_when_image_and_secret_are_matched(image: str, password: str) -> None:
    found = _lookup(image, ("gitlab.com:443", "with-port"), ("gitlab.com", "without-port"))
    assert _password(found) == password


def test_d4_an_image_with_a_port_runs_with_its_credential() -> None:
    world = RunPodInstallation()
    image = "gitlab.com:443/group/app:1"
    world.account.images.private = {image: (USER, PASSWORD)}
    put_login(world, ("gitlab.com:443", USER, PASSWORD))
    world.create_pod(**with_image(image, "login"))
    world.pump()
    world.run(2)
    assert world.created()["image"] == image
    assert running(world.pod())


@pytest.mark.parametrize("legacy", [True, False], ids=["dockercfg", "dockerconfigjson"])
def test_d5_a_private_image_runs_with_either_type_of_secret(legacy: bool) -> None:
    world = RunPodInstallation()
    world.account.images.private = {IMAGE: (USER, PASSWORD)}
    put_login(world, legacy=legacy)
    world.create_pod(**with_image(IMAGE, "login"))
    world.pump()
    world.run(2)
    assert running(world.pod())


def test_d6_an_ecr_password_is_marked_warned_about_and_not_lent_past_its_twelve_hours() -> None:
    world = RunPodInstallation()
    image = f"{ECR}/team/train:1"
    put_login(world, (ECR, "AWS", PASSWORD))
    world.create_pod(**with_image(image, "login"))
    world.pump()
    (warning,) = events(world, "FailedToRetrieveImagePullSecret")
    assert "a restart after that cannot pull the image again" in warning["message"]
    (row,) = world.credentials.all(include_retired=True)
    assert row.expires_at == world.clock.now() + timedelta(hours=12)
    world.clock.advance(timedelta(hours=12))
    world.create_pod("late", **with_image(image, "login"))
    world.pump()
    assert world.claim("late").reason == "CredentialExpired"
    assert "expired at" in condition(world.pod("late"))["message"]
    assert len(world.calls("POST", "/v2/pods")) == 1


def test_d7_of_https_host_and_host_the_plain_spelling_wins_in_either_order() -> None:
    both = (("https://registry.example.com", "stale"), ("registry.example.com", "fresh"))
    assert _password(_lookup(IMAGE, *both)) == "fresh"
    assert _password(_lookup(IMAGE, *reversed(both))) == "fresh"


@pytest.mark.parametrize("path", ["", "/", "/v1/", "/v2/"])
@pytest.mark.parametrize("scheme", ["", "https://", "http://"])
def test_d7_scheme_and_a_trailing_version_are_no_part_of_a_key(scheme: str, path: str) -> None:
    assert _password(_lookup(IMAGE, (f"{scheme}{REGISTRY}{path}", "p"))) == "p"


@pytest.mark.parametrize("path", ["/v1", "/v2"])
def test_d7_without_its_closing_slash_a_version_is_a_path_as_for_a_kubelet(path: str) -> None:
    assert _password(_lookup(IMAGE, (f"{REGISTRY}{path}", "p"))) == ""


@pytest.mark.parametrize("key", ["docker.io", "index.docker.io", "https://index.docker.io/v1/", "https://docker.io"])
def test_d7_every_name_of_docker_hub_that_a_kubelet_knows_serves_its_images(key: str) -> None:
    assert _password(_lookup("acme/serve:1", (key, "p"))) == "p"


def test_d7_registry_1_docker_io_matches_as_little_as_for_a_kubelet_and_is_warned_about() -> None:
    found = _lookup("acme/serve:1", ("registry-1.docker.io", "p"))
    assert found.credential is None
    assert any("registry-1.docker.io matches no image of Docker Hub" in text for text in found.warnings)


@pytest.mark.parametrize("image", ["bash", "docker.io/bash", "docker.io/library/bash", "index.docker.io/bash:5"])
def test_d9_docker_io_bash_is_docker_io_library_bash(image: str) -> None:
    assert _password(_lookup(image, ("docker.io/library", "p"))) == "p"
    assert _password(_lookup(image, ("docker.io/other", "p"))) == ""


def test_d10_an_image_pull_that_stays_pending_ends_at_the_start_deadline_and_is_not_paid_for_any_longer() -> None:
    world = RunPodInstallation()
    world.account.images.private = {IMAGE: ("nobody", "knows")}
    world.create_pod(**with_image(IMAGE))
    world.pump()
    world.run(19)
    pending = world.pod()
    assert pending is not None
    (container,) = pending["status"]["containerStatuses"]
    assert container["state"]["waiting"]["reason"] == "ContainerCreating"
    world.run(3)
    failed = world.pod()
    assert failed is not None
    assert (failed["status"]["phase"], failed["status"]["reason"]) == ("Failed", "StartDeadline")
    assert "did not start" in failed["status"]["message"]
    assert world.alive() == []
    assert world.claim().phase is Phase.TERMINATED


@pytest.mark.parametrize("name", ["gone", "..", "a/b"])
def test_d11_a_missing_pull_secret_warns_and_the_public_image_is_pulled_without_it(name: str) -> None:
    world = RunPodInstallation()
    world.create_pod(**with_image("nginx:1.27", name))
    world.pump()
    world.run(1)
    assert running(world.pod())
    assert "registry" not in world.created()
    (warning,) = events(world, "FailedToRetrieveImagePullSecret")
    assert warning["type"] == "Warning"
    assert f"default/{name} does not exist" in warning["message"]


def test_d12_err_image_pull_ends_at_the_deadline_that_the_nodepool_sets_for_restart_policy_never_too() -> None:
    world = RunPodInstallation(failover={"startDeadline": "3m"}, allowUnknownExit=True)
    world.account.images.private = {IMAGE: ("nobody", "knows")}
    world.create_pod(**with_image(IMAGE, restartPolicy="Never"))
    world.pump()
    world.run(2)
    assert len(world.alive()) == 1
    until_true(world, lambda: world.claim().phase is Phase.TERMINATED, minutes=4)
    assert world.claim().termination_reason is TerminationReason.START_DEADLINE
    assert world.alive() == []
    ended = world.pod()
    assert ended is not None
    assert ended["status"]["phase"] == "Failed"
