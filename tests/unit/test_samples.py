"""The sample events and fixtures are what the functions meet: parsed by the product's own code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from nebula.domain.claim import claim_id_for
from nebula.events.details import ClaimDetail, Detail, NodePoolDetail, PodDetail, SecretDetail, TickDetail
from nebula.events.envelope import parse_envelope
from nebula.kubernetes.node_pool import node_pool_from_object
from nebula.kubernetes.pod import Pod
from nebula.kubernetes.workload import refusals, shape_of, translate

from local.kubernetes.pod_defaults import GATED_MESSAGE
from tests.support.pods import References

ROOT = Path(__file__).resolve().parents[2]
MODELS: dict[str, type[Detail]] = {
    "pod-gated": PodDetail,
    "pod-gated-cpu-only": PodDetail,
    "pod-gated-private-image": PodDetail,
    "pod-changed": PodDetail,
    "pod-deleted": PodDetail,
    "secret-changed": SecretDetail,
    "nodepool-changed": NodePoolDetail,
    "claim-placed": ClaimDetail,
    "claim-due": ClaimDetail,
    "claim-abandoned": ClaimDetail,
    "instance-ready": ClaimDetail,
    "provision-rejected": ClaimDetail,
    "schedule-status": TickDetail,
    "schedule-retirement": TickDetail,
}
PODS = {"pod-gated": "pod-gpu", "pod-gated-cpu-only": "pod-cpu-only", "pod-gated-private-image": "pod-private-image"}
ENVELOPE = {"version", "id", "detail-type", "source", "account", "time", "region", "resources", "detail"}


def load(folder: str, name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((ROOT / folder / f"{name}.json").read_text())
    return read


def fixture(name: str) -> dict[str, Any]:
    return load("local/fixtures", name)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_sample_event_is_read_by_the_model_of_its_detail_type(name: str) -> None:
    event = load("events", name)
    detail = parse_envelope(event).read(MODELS[name])
    assert detail.schema_version == 1
    on_the_bus = not name.startswith("schedule-")
    assert set(event) == (ENVELOPE if on_the_bus else {"source", "detail-type", "detail"})
    assert event["source"].startswith("nebula.")


def test_there_is_a_model_for_each_sample_and_a_sample_for_each_name() -> None:
    assert {path.stem for path in (ROOT / "events").glob("*.json")} == set(MODELS)


@pytest.mark.parametrize(("event", "pod"), PODS.items())
def test_pod_samples_carry_the_fixture_s_identity_and_never_its_spec(event: str, pod: str) -> None:
    detail, found = load("events", event)["detail"], Pod.from_object(fixture(pod))
    identity = (found.namespace, found.name, found.uid, found.resource_version)
    assert identity == (detail["namespace"], detail["name"], detail["uid"], detail["resource_version"])
    assert "spec" not in detail


@pytest.mark.parametrize(
    "name", ["claim-placed", "claim-due", "claim-abandoned", "instance-ready", "provision-rejected"]
)
def test_claim_samples_carry_the_claim_of_the_gpu_pod(name: str) -> None:
    detail = load("events", name)["detail"]
    assert detail["claim_id"] == claim_id_for("demo", fixture("pod-gpu")["metadata"]["uid"])


@pytest.mark.parametrize("name", PODS.values())
def test_a_fixture_pod_is_one_that_kubectl_shows_right_after_creation(name: str) -> None:
    found = fixture(name)
    pod = Pod.from_object(found)
    seconds = {t["key"]: t["tolerationSeconds"] for t in pod.spec["tolerations"]}
    mounts = [mount["mountPath"] for mount in pod.containers[0]["volumeMounts"]]
    assert found["metadata"]["managedFields"][0]["fieldsType"] == "FieldsV1"
    assert seconds == {"node.kubernetes.io/not-ready": 300, "node.kubernetes.io/unreachable": 300}
    assert pod.spec["volumes"][0]["name"].startswith("kube-api-access-")
    assert mounts == ["/var/run/secrets/kubernetes.io/serviceaccount"]
    assert (pod.condition("PodScheduled") or {})["message"] == GATED_MESSAGE
    assert pod.enabled
    assert pod.gated
    assert not pod.foreign_gates


@pytest.mark.parametrize(
    ("name", "shape", "ports", "ignored"),
    [
        ("pod-gpu", "H100:1/cpu=4/mem=24Gi/disk=43GB", (8000,), ("readinessProbe",)),
        ("pod-cpu-only", "cpu-only/cpu=2/mem=4Gi/disk=default", (), ("FirstPort",)),
        ("pod-private-image", "H100:1/cpu=0/mem=0Gi/disk=default", (), ("FirstPort",)),
    ],
)
def test_a_fixture_pod_is_translated_whole(
    name: str, shape: str, ports: tuple[int, ...], ignored: tuple[str, ...]
) -> None:
    pod = Pod.from_object(fixture(name))
    settings = fixture("configmap-llm-settings")
    api = References(config_maps={settings["metadata"]["name"]: settings["data"]}).api
    translation = translate(pod, node_pool_from_object(fixture("nodepool-demo")), api)
    assert refusals(pod) == ()
    assert str(shape_of(pod)) == shape
    assert tuple(port.port for port in translation.workload.ports) == ports
    assert len(translation.ignored) == len(ignored)
    assert all(word in text for word, text in zip(ignored, translation.ignored, strict=True))


def test_the_fixture_secret_and_nodepool_are_the_ones_that_the_pods_and_samples_name() -> None:
    secret, pool = fixture("secret-registry-login"), fixture("nodepool-demo")
    assert Pod.from_object(fixture("pod-private-image")).spec["imagePullSecrets"] == [
        {"name": secret["metadata"]["name"]}
    ]
    assert load("events", "secret-changed")["detail"]["name"] == secret["metadata"]["name"]
    assert load("events", "nodepool-changed")["detail"]["name"] == pool["metadata"]["name"]
    assert secret["type"] == "kubernetes.io/dockerconfigjson"
