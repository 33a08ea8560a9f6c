"""The frozen view over a Pod, and the hash of what provisioning uses."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest
from nebula.kubernetes.pod import MalformedPodError, Pod

from tests.support.pods import GATE, Object, container, pod, pod_object


def test_what_a_view_reads() -> None:
    found = pod(schedulingGates=[{"name": "kueue.x-k8s.io/topology"}, {"name": GATE}])
    assert (found.namespace, found.name, found.uid, found.resource_version) == ("team", "web-0", "uid-1", "7")
    assert (found.enabled, found.gated, found.node_pool) == (True, True, "demo")
    assert found.foreign_gates == ("kueue.x-k8s.io/topology",)
    assert (found.phase, found.terminal, found.node_name) == ("Pending", False, None)
    assert (found.claim_annotation, found.deletion_timestamp) == (None, None)


def test_times_are_aware_utc_in_both_formats() -> None:
    found = pod_object()
    found["metadata"] |= {
        "creationTimestamp": "2026-11-30T09:00:00+01:00",
        "deletionTimestamp": "2026-11-30T08:00:01.000001Z",
    }
    read = Pod.from_object(found)
    assert read.created_at == datetime(2026, 11, 30, 8, tzinfo=UTC)
    assert read.deletion_timestamp == datetime(2026, 11, 30, 8, 0, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("value", ["True", "yes", "1", ""])
def test_only_the_word_true_opts_in(value: str) -> None:
    assert not pod(labels={"nebula.inftyai.com/enabled": value}).enabled


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("metadata",), None),
        (("metadata", "uid"), None),
        (("metadata", "uid"), 5),
        (("metadata", "name"), ""),
        (("metadata", "labels"), ["x"]),
        (("spec",), []),
        (("spec", "containers"), {}),
        (("spec", "containers"), ["x"]),
        (("spec", "tolerations"), "x"),
        (("status",), "x"),
    ],
)
def test_a_malformed_pod_is_refused_with_its_field_named(path: tuple[str, ...], value: Any) -> None:
    found: Any = pod_object()
    at = found
    for part in path[:-1]:
        at = at[part]
    at[path[-1]] = value
    with pytest.raises(MalformedPodError, match=path[-1]):
        Pod.from_object(found)


def test_a_view_shows_no_spec() -> None:
    text = repr(pod(container(env=[{"name": "A", "value": "hunter2"}]), annotations={"note": "hunter2"}))
    assert "hunter2" not in text


def changed(**metadata: Any) -> Object:
    found = copy.deepcopy(pod_object(container(env=[reference("team")])))
    found["metadata"] |= metadata
    return found


def reference(label: str) -> Object:
    return {"name": "TEAM", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{label}']"}}}


LABELS = pod_object()["metadata"]["labels"]


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {**LABELS, "nebula.inftyai.com/accelerator-type": "a100"}},
        {"labels": {**LABELS, "nebula.inftyai.com/nodepool": "other"}},
        {"labels": {**LABELS, "nebula.inftyai.com/enabled": "false"}},
        {"labels": {**LABELS, "team": "ml"}},
        {"annotations": {"nebula.inftyai.com/ingress-ports": "none"}},
    ],
)
def test_y9_what_provisioning_uses_moves_the_hash(metadata: Object) -> None:
    assert Pod.from_object(changed(**metadata)).fields_hash() != Pod.from_object(changed()).fields_hash()


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {**LABELS, "pod-template-hash": "abc"}},
        {"annotations": {"nebula.inftyai.com/claim": "c", "other": "x"}},
        {"resourceVersion": "99", "generation": 5, "managedFields": [{"manager": "x"}]},
        {"deletionTimestamp": "2026-11-30T08:00:00Z"},
    ],
)
def test_y9_what_it_does_not_use_leaves_the_hash(metadata: Object) -> None:
    assert Pod.from_object(changed(**metadata)).fields_hash() == Pod.from_object(changed()).fields_hash()


@pytest.mark.parametrize(
    ("key", "value", "same"),
    [
        ("containers", [container(image="example.com/app:2", env=[reference("team")])], False),
        ("activeDeadlineSeconds", 60, False),
        ("imagePullSecrets", [{"name": "s"}], False),
        ("restartPolicy", "Never", False),
        ("schedulingGates", [], True),
        ("tolerations", [{"operator": "Exists"}], True),
        ("nodeSelector", {"a": "b"}, True),
        ("nodeName", "nebula-runpod", True),
        ("affinity", {"nodeAffinity": {}}, True),
        ("ephemeralContainers", [container(name="debug")], True),
    ],
)
def test_y9_spec_fields_in_the_hash(key: str, value: Any, same: bool) -> None:
    found = changed()
    found["spec"][key] = value
    assert (Pod.from_object(found).fields_hash() == Pod.from_object(changed()).fields_hash()) is same
