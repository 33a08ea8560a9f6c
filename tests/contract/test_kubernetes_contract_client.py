"""The product's client against every server: each method's promise in ``kubernetes/api.py``."""

from __future__ import annotations

import os

import pytest
from nebula.kubernetes.api import ConflictError, InvalidError, NotFoundError

from tests.support.kubernetes_api import NODE_POOLS, Api, unique
from tests.support.kubernetes_targets import NO_ASSETS, TARGETS


@pytest.mark.apiserver
def test_the_suite_ran_against_a_real_server() -> None:
    if not os.environ.get("KUBEBUILDER_ASSETS"):
        pytest.skip(NO_ASSETS)
    assert len(TARGETS) == 3


def test_cluster_uid_is_that_of_kube_system(api: Api) -> None:
    found = api.must("GET", "/api/v1/namespaces/kube-system")
    assert api.client.cluster_uid() == found["metadata"]["uid"]


def test_reads_of_absent_objects_are_none(api: Api) -> None:
    assert api.client.get_pod(api.namespace, "absent") is None
    assert api.client.get_secret(api.namespace, "absent") is None
    assert api.client.get_config_map(api.namespace, "absent") is None
    assert api.client.get_node("absent") is None
    assert api.client.get_lease("absent") is None
    assert api.client.get_node_pool("absent") is None


def test_writes_of_absent_objects_raise(api: Api) -> None:
    with pytest.raises(NotFoundError):
        api.client.patch_pod(api.namespace, "absent", {"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(NotFoundError):
        api.client.patch_node_status("absent", {"status": {}})
    with pytest.raises(NotFoundError):
        api.client.patch_lease("absent", {"spec": {"holderIdentity": "x"}})
    assert not api.client.delete_node("absent")


def test_list_takes_every_page_and_selects(api: Api) -> None:
    for index in range(3):
        api.pod(f"listed-{index}", labels={"suite": "list"})
    found = api.client.list_pods("suite=list")
    assert [pod["metadata"]["name"] for pod in found] == ["listed-0", "listed-1", "listed-2"]
    assert api.client.list_pods("suite=list", "metadata.name=listed-1")[0]["metadata"]["name"] == "listed-1"


def test_node_keeps_the_status_of_its_creation(api: Api) -> None:
    name = unique("nebula")
    conditions = [{"type": "Ready", "status": "True", "reason": "NebulaReady"}]
    status = {"capacity": {"cpu": "1M", "pods": "1M"}, "allocatable": {"cpu": "1M", "pods": "1M"}}
    node = {"metadata": {"name": name}, "status": {**status, "conditions": conditions}}
    created = api.client.create_node(node)
    assert created["status"]["allocatable"]["pods"] == "1M"
    with pytest.raises(ConflictError):
        api.client.create_node(node)
    patched = api.client.patch_node_status(name, {"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
    assert [item["status"] for item in patched["status"]["conditions"] if item["type"] == "Ready"] == ["False"]
    assert api.client.delete_node(name)


def test_lease_is_created_once_and_renewed(api: Api) -> None:
    name = unique("nebula")
    renewed = "2026-01-01T00:00:00.000000Z"
    spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": renewed}
    lease = {"metadata": {"name": name, "namespace": "kube-node-lease"}, "spec": spec}
    api.client.create_lease(lease)
    with pytest.raises(ConflictError):
        api.client.create_lease(lease)
    api.client.patch_lease(name, {"spec": {"renewTime": "2026-01-01T00:00:10.000000Z"}})
    found = api.client.get_lease(name)
    assert found is not None
    assert found["spec"]["renewTime"] == "2026-01-01T00:00:10.000000Z"


def test_node_pool_status_is_written_apart(api: Api) -> None:
    name = unique("pool")
    body = {"apiVersion": "nebula.inftyai.com/v1alpha1", "kind": "NodePool", "metadata": {"name": name}}
    api.must("POST", NODE_POOLS, {**body, "spec": {"providers": [{"name": "runpod"}]}})
    api.client.patch_node_pool_status(name, {"status": {"providers": "1"}})
    found = api.client.get_node_pool(name)
    assert found is not None
    assert found["status"]["providers"] == "1"
    assert name in [pool["metadata"]["name"] for pool in api.client.list_node_pools()]


def test_event_is_made_once_and_counted(api: Api) -> None:
    name = unique("event")
    involved = {"kind": "Pod", "apiVersion": "v1", "name": "a", "namespace": api.namespace}
    body = {"metadata": {"name": name, "namespace": api.namespace}, "involvedObject": involved, "count": 1}
    api.client.create_event(api.namespace, body)
    with pytest.raises(ConflictError):
        api.client.create_event(api.namespace, body)
    assert api.client.patch_event(api.namespace, name, {"count": 2})["count"] == 2


def test_refused_patch_names_the_field_and_not_its_value(api: Api) -> None:
    pod = api.pod(containers=[{"name": "main", "image": "i", "env": [{"name": "A", "value": "hunter2"}]}])
    changed = {"spec": {"containers": [{"name": "main", "env": [{"name": "A", "value": "hunter3"}]}]}}
    with pytest.raises(InvalidError) as caught:
        api.client.patch_pod(api.namespace, pod["metadata"]["name"], changed)
    assert "spec" in str(caught.value)
    assert "hunter" not in str(caught.value)


def test_get_config_map_and_secret_return_their_data(api: Api) -> None:
    base = f"/api/v1/namespaces/{api.namespace}"
    api.must("POST", f"{base}/configmaps", {"metadata": {"name": "settings"}, "data": {"a": "b"}})
    api.must("POST", f"{base}/secrets", {"metadata": {"name": "settings"}, "data": {"a": "Yg=="}})
    config_map = api.client.get_config_map(api.namespace, "settings")
    secret = api.client.get_secret(api.namespace, "settings")
    assert config_map is not None
    assert secret is not None
    assert (config_map["data"], secret["data"]) == ({"a": "b"}, {"a": "Yg=="})
