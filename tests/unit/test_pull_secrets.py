"""Which credential a Pod's image gets, from Secrets as the API gives them."""

from __future__ import annotations

import base64
import traceback
from datetime import timedelta
from typing import Any, cast

import pytest
from nebula.domain.workload import PullCredential
from nebula.kubernetes.api import ClusterUnavailableError, KubernetesApi
from nebula.kubernetes.pull_secrets import (
    PullLookup,
    UnsupportedPullSecretError,
    find_pull_credential,
    fingerprints_in,
)

from tests.support.lending import KEY, START, SecretsApi, docker_config, pod, pull_secret

ECR = "123456789012.dkr.ecr.eu-central-1.amazonaws.com"
IMAGE = "r.io/team/app:1"


def _lookup(secrets: dict[str, Any], image: str = IMAGE, *names: str, api: SecretsApi | None = None) -> PullLookup:
    api = api or SecretsApi()
    api.secrets.update({("default", name): secret for name, secret in secrets.items()})
    return find_pull_credential(cast("KubernetesApi", api), pod(*(names or tuple(secrets))), image)


def _found(lookup: PullLookup) -> PullCredential:
    assert lookup.credential is not None
    return lookup.credential


def _password(lookup: PullLookup) -> str:
    return _found(lookup).password.get_secret_value()


@pytest.mark.parametrize("legacy", [False, True])
def test_both_secret_types_are_understood(legacy: bool) -> None:
    entry = {"r.io": {"username": "u", "password": "p"}}
    lookup = _lookup({"pull": pull_secret(entry if legacy else {"auths": entry}, legacy=legacy)})
    credential = _found(lookup)
    assert (credential.registry, credential.source, credential.expires_at) == ("r.io", "prod/default/pull", None)
    assert (credential.username.get_secret_value(), _password(lookup)) == ("u", "p")
    assert lookup.warnings == ()


def test_a_pod_without_secrets_and_secrets_that_do_not_match_pull_anonymously() -> None:
    assert _lookup({}, IMAGE, "").credential is None
    assert _lookup({"pull": pull_secret(docker_config(("other.io", "u", "p")))}) == PullLookup(None)


def test_only_the_pods_namespace_is_read() -> None:
    api = SecretsApi()
    api.secrets["elsewhere", "pull"] = pull_secret(docker_config(("r.io", "u", "p")))
    lookup = _lookup({}, IMAGE, "pull", api=api)
    assert lookup.credential is None
    assert api.reads == [("default", "pull")]


def test_a_longer_path_wins_over_an_earlier_secret_and_the_order_of_the_pod_decides_the_rest() -> None:
    secrets = {
        "first": pull_secret(docker_config(("r.io", "u", "first"))),
        "second": pull_secret(docker_config(("r.io/team", "u", "longer"), ("r.io", "u", "second"))),
    }
    lookup = _lookup(secrets)
    assert _password(lookup) == "longer"
    assert [c.password.get_secret_value() for c in lookup.alternatives] == ["first", "second"]


def test_a_secret_named_twice_is_read_once() -> None:
    api = SecretsApi()
    _lookup({"pull": pull_secret(docker_config(("r.io", "u", "p")))}, IMAGE, "pull", "pull", api=api)
    assert api.reads == [("default", "pull")]


def test_a_missing_secret_is_a_warning_and_no_more() -> None:
    lookup = _lookup({"pull": pull_secret(docker_config(("r.io", "u", "p")))}, IMAGE, "gone", "pull")
    assert _password(lookup) == "p"
    assert lookup.warnings == ("Secret default/gone does not exist; the pull goes on without it",)


@pytest.mark.parametrize(
    "secret",
    [
        {"type": "Opaque", "data": {".dockerconfigjson": "e30="}},
        {"type": "kubernetes.io/dockerconfigjson", "data": {}},
        {"type": "kubernetes.io/dockerconfigjson"},
        {"type": "kubernetes.io/dockercfg", "data": {".dockerconfigjson": "e30="}},
        {"data": None},
    ],
)
def test_a_secret_of_another_kind_is_passed_over_with_a_warning(secret: dict[str, Any]) -> None:
    lookup = _lookup({"pull": secret})
    assert lookup.credential is None
    assert "not of an image pull type" in lookup.warnings[0]


@pytest.mark.parametrize(
    "config",
    [b"CANARY", b'{"auths": {"r.io": {"password": 5, "username": "CANARY"}}}', b'{"auths":{"x":{"auth":"CANARY*"}}}'],
)
def test_a_broken_secret_is_refused_by_name_and_shows_nothing(config: bytes) -> None:
    secrets = {"good": pull_secret(docker_config(("r.io", "u", "p"))), "bad": pull_secret(config)}
    with pytest.raises(UnsupportedPullSecretError, match="Secret default/bad is broken") as caught:
        _lookup(secrets)
    assert "CANARY" not in "".join(traceback.format_exception(caught.value))


def test_data_that_is_not_base64_is_broken_too() -> None:
    secret = {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "CANARY*"}}
    with pytest.raises(UnsupportedPullSecretError, match="not base64") as caught:
        _lookup({"pull": secret})
    assert "CANARY" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"auths": {"r.io": {"identitytoken": "CANARY"}}}, "identitytoken"),
        ({"auths": {"r.io": {}}, "credsStore": "osxkeychain"}, "credsStore"),
        ({"credHelpers": {"r.io": "ecr-login"}}, "credential helper ecr-login"),
        ({"auths": {"r.io": {"email": "e@example.com"}}}, "no user and password"),
    ],
)
def test_what_a_provider_cannot_take_is_refused_and_never_anonymous(config: object, why: str) -> None:
    with pytest.raises(UnsupportedPullSecretError, match=why) as caught:
        _lookup({"pull": pull_secret(config)})
    assert "default/pull" in str(caught.value)
    assert "CANARY" not in str(caught.value)


@pytest.mark.parametrize(
    "config",
    [
        {"auths": {"other.io": {"identitytoken": "t"}}},
        {"credHelpers": {"other.io": "ecr-login"}},
        {"auths": {}, "credsStore": "osxkeychain"},
    ],
)
def test_tokens_and_helpers_of_other_registries_do_not_matter(config: object) -> None:
    assert _lookup({"pull": pull_secret(config)}).credential is None


def test_a_password_that_matches_is_used_beside_a_token_that_matches_too() -> None:
    config = {"auths": {"r.io/team": {"identitytoken": "t"}, "r.io": {"username": "u", "password": "p"}}}
    assert _password(_lookup({"pull": pull_secret(config)})) == "p"
    helper = {"auths": {"r.io": {"username": "u", "password": "p"}}, "credHelpers": {"r.io": "ecr-login"}}
    assert _password(_lookup({"pull": pull_secret(helper)})) == "p"


def test_a_forbidden_secret_is_refused_unless_another_one_matches() -> None:
    api = SecretsApi()
    api.forbidden = {"default"}
    with pytest.raises(UnsupportedPullSecretError, match="default/pull may hold"):
        _lookup({}, IMAGE, "pull", api=api)

    class OneForbidden(SecretsApi):
        def get_secret(self, namespace: str, name: str) -> dict[str, Any] | None:
            self.forbidden = {"default"} if name == "closed" else set()
            return super().get_secret(namespace, name)

    secrets = {"open": pull_secret(docker_config(("r.io", "u", "p")))}
    lookup = _lookup(secrets, IMAGE, "closed", "open", api=OneForbidden())
    assert _password(lookup) == "p"
    assert "may not read it" in lookup.warnings[0]


def test_a_pod_that_names_hundreds_of_secrets_is_refused_before_they_are_read() -> None:
    many = [f"pull-{number}" for number in range(300)]
    with pytest.raises(UnsupportedPullSecretError, match="names 300 Secrets, more than 50"):
        _lookup({}, IMAGE, *many)
    assert len(_lookup({}, IMAGE, *many[:50], *many[:50]).warnings) == 50


def test_a_silent_cluster_is_unknown_and_not_an_absent_secret() -> None:
    api = SecretsApi()
    api.down = True
    with pytest.raises(ClusterUnavailableError):
        _lookup({}, IMAGE, "pull", api=api)


def test_an_image_that_a_cloud_role_would_pull_is_refused_without_a_secret() -> None:
    with pytest.raises(UnsupportedPullSecretError, match="cloud role"):
        _lookup({}, f"{ECR}/app:1", "")
    assert _lookup({}, "public.ecr.aws/nginx/nginx", "").credential is None


@pytest.mark.parametrize(
    ("metadata", "written_after"),
    [
        ({}, timedelta(0)),
        ({"managedFields": [{"time": "2026-11-01T20:00:00Z", "fieldsV1": {"f:data": {}}}]}, timedelta(hours=8)),
        (
            {
                "managedFields": [
                    {"time": "2026-11-01T20:00:00Z", "fieldsV1": {"f:data": {}}},
                    {"time": "2026-11-01T23:00:00Z", "fieldsV1": {"f:metadata": {}}},
                    {"time": "2026-11-01T14:00:00Z", "fieldsV1": {"f:data": {}}},
                    {"time": "not a time", "fieldsV1": {"f:data": {}}},
                    {"fieldsV1": None},
                    "junk",
                ]
            },
            timedelta(hours=8),
        ),
    ],
)
def test_an_ecr_password_expires_twelve_hours_after_its_secret_was_written(
    metadata: dict[str, Any], written_after: timedelta
) -> None:
    secret = pull_secret(docker_config((ECR, "AWS", "p")))
    secret["metadata"] |= metadata
    lookup = _lookup({"pull": secret}, f"{ECR}/app:1")
    assert _found(lookup).expires_at == START + written_after + timedelta(hours=12)
    assert "a restart after that cannot pull" in lookup.warnings[-1]


def test_a_time_at_the_end_of_all_times_stops_nothing() -> None:
    """An API server takes any time that a client puts into managedFields."""
    secret = pull_secret(docker_config((ECR, "AWS", "p")))
    secret["metadata"]["managedFields"] = [{"time": "9999-12-31T23:59:59Z", "fieldsV1": {"f:data": {}}}]
    assert _found(_lookup({"pull": secret}, f"{ECR}/app:1")).expires_at is None


def test_only_ecrs_own_user_on_ecr_expires() -> None:
    assert _found(_lookup({"a": pull_secret(docker_config((ECR, "other", "p")))}, f"{ECR}/a")).expires_at is None
    assert _found(_lookup({"a": pull_secret(docker_config(("r.io", "AWS", "p")))})).expires_at is None
    public = _lookup({"a": pull_secret(docker_config(("public.ecr.aws", "AWS", "p")))}, "public.ecr.aws/team/a")
    assert _found(public).expires_at is not None
    wild = _lookup({"a": pull_secret(docker_config(("*.dkr.ecr.*.amazonaws.com", "AWS", "p")))}, f"{ECR}/a")
    assert _found(wild).expires_at is not None


def test_a_name_that_people_take_for_docker_hubs_is_pointed_out() -> None:
    lookup = _lookup({"pull": pull_secret(docker_config(("registry-1.docker.io", "u", "p")))}, "nginx")
    assert lookup.credential is None
    assert "write docker.io" in lookup.warnings[0]


def test_docker_hubs_aliases_are_one_credential() -> None:
    spelled = ("https://index.docker.io/v1/", "docker.io", "https://docker.io", "index.docker.io")
    prints = [fingerprints_in(pull_secret(docker_config((name, "u", "p"))), KEY) for name in spelled]
    assert len(set(prints)) == 1
    assert (
        _found(_lookup({"pull": pull_secret(docker_config((spelled[0], "u", "p")))}, "nginx")).registry == "docker.io"
    )


def test_a_secret_that_yields_nothing_has_no_fingerprints() -> None:
    assert fingerprints_in(pull_secret(b"{"), KEY) == frozenset()
    assert fingerprints_in({"type": "Opaque"}, KEY) == frozenset()
    assert fingerprints_in(pull_secret({"auths": {"r.io": {"identitytoken": "t"}}}), KEY) == frozenset()
    two = pull_secret(docker_config(("r.io", "u", "p"), ("s.io", "u", "p")))
    assert len(fingerprints_in(two, KEY)) == 2


def test_base64_with_line_breaks_from_a_hand_written_manifest_is_refused_like_any_other_junk() -> None:
    text = base64.encodebytes(b'{"auths": {}}' * 10).decode()
    with pytest.raises(UnsupportedPullSecretError):
        _lookup({"pull": {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": text}}})
