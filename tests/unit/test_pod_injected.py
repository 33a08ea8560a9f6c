"""What admission adds to a Pod: the token without a word, EKS credentials with one, the user's own never."""

from __future__ import annotations

import pytest
from nebula.kubernetes.workload import InvalidPodError, Translation, refusals, translate

from tests.support.pods import Object, References, container, node_pool, pod

TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"
IRSA = "/var/run/secrets/eks.amazonaws.com/serviceaccount"
POD_IDENTITY = "/var/run/secrets/pods.eks.amazonaws.com/serviceaccount"
SOURCES: list[Object] = [
    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    {"downwardAPI": {"items": [{"path": "namespace"}]}},
]


def volume(name: str, sources: list[Object]) -> Object:
    return {"name": name, "projected": {"sources": sources, "defaultMode": 420}}


def mount(name: str, path: str) -> Object:
    return {"name": name, "mountPath": path, "readOnly": True}


def run(*volumes: Object, mounts: list[Object], env: list[Object] | None = None) -> Translation:
    return translate(
        pod(container(volumeMounts=mounts, env=env or []), volumes=list(volumes)), node_pool(), References().api
    )


@pytest.mark.parametrize("name", ["kube-api-access-7k2xq", "any-name"])
def test_the_service_account_token_is_ignored_without_a_word_under_any_name(name: str) -> None:
    assert run(volume(name, SOURCES), mounts=[mount(name, TOKEN)]).ignored == ()


@pytest.mark.parametrize(
    ("sources", "path"),
    [
        (SOURCES, "/somewhere/else"),
        ([*SOURCES, {"secret": {"name": "mine"}}], TOKEN),
        ([*SOURCES[:1], {"configMap": {"name": "mine"}}], TOKEN),
        (SOURCES[1:], TOKEN),
        ([], TOKEN),
    ],
)
def test_g11_a_volume_of_the_user_s_is_refused_even_under_the_token_s_name(sources: list[Object], path: str) -> None:
    with pytest.raises(InvalidPodError, match="kube-api-access-abcde"):
        run(volume("kube-api-access-abcde", sources), mounts=[mount("kube-api-access-abcde", path)])


def test_a_token_that_is_mounted_a_second_time_elsewhere_is_refused() -> None:
    with pytest.raises(InvalidPodError, match=r"volumes\[t\]"):
        run(volume("t", SOURCES), mounts=[mount("t", TOKEN), mount("t", "/other")])


def irsa() -> list[Object]:
    return [
        {"name": "AWS_STS_REGIONAL_ENDPOINTS", "value": "regional"},
        {"name": "AWS_ROLE_ARN", "value": "arn:aws:iam::123456789012:role/app"},
        {"name": "AWS_WEB_IDENTITY_TOKEN_FILE", "value": f"{IRSA}/token"},
    ]


def test_irsa_credentials_are_taken_out_with_a_word() -> None:
    token = [{"serviceAccountToken": {"audience": "sts.amazonaws.com", "path": "token"}}]
    translation = run(volume("aws-iam-token", token), mounts=[mount("aws-iam-token", IRSA)], env=irsa())
    assert set(translation.workload.env) == {"AWS_STS_REGIONAL_ENDPOINTS"}
    assert translation.ignored == ("IRSA credentials (their token file does not exist outside the cluster)",)


def test_pod_identity_credentials_are_taken_out_with_a_word() -> None:
    token = [{"serviceAccountToken": {"audience": "pods.eks.amazonaws.com", "path": "eks-pod-identity-token"}}]
    env: list[Object] = [
        {"name": "AWS_CONTAINER_CREDENTIALS_FULL_URI", "value": "http://169.254.170.23/v1/credentials"},
        {"name": "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "value": f"{POD_IDENTITY}/eks-pod-identity-token"},
        {"name": "KEPT", "value": "1"},
    ]
    translation = run(volume("t", token), mounts=[mount("t", POD_IDENTITY)], env=env)
    assert set(translation.workload.env) == {"KEPT"}
    assert translation.ignored[0].startswith("Pod Identity credentials")


def test_a_role_that_the_user_set_is_kept() -> None:
    env: list[Object] = [
        {"name": "AWS_ROLE_ARN", "value": "arn:x"},
        {"name": "AWS_WEB_IDENTITY_TOKEN_FILE", "value": "/mine/token"},
    ]
    translation = run(mounts=[], env=env)
    assert set(translation.workload.env) == {"AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE"}
    assert translation.ignored == ()


def test_y6_an_injected_sidecar_turns_the_pod_into_one_that_is_refused_by_both_names() -> None:
    found = pod(
        container(), container(name="istio-proxy", volumeMounts=[mount("t", TOKEN)]), volumes=[volume("t", SOURCES)]
    )
    assert refusals(found) == ("spec.containers (one container per Pod, found: main, istio-proxy)",)
