"""Objects in general: names, versions, conflicts, lists. The same on the emulator and on a real server."""

from __future__ import annotations

import pytest

from tests.support.kubernetes_api import JSON_PATCH, LEASES, MERGE, NODE_POOLS, STRATEGIC, Api, pod_object, unique


def _config_map(api: Api, name: str = "", **data: str) -> str:
    name = name or unique("map")
    path = f"/api/v1/namespaces/{api.namespace}/configmaps"
    api.must("POST", path, {"metadata": {"name": name, "labels": {"set": name}}, "data": data})
    return f"{path}/{name}"


def test_created_object_has_what_the_server_owns(api: Api) -> None:
    pod = api.pod("owned")
    metadata = pod["metadata"]
    assert len(metadata["uid"]) == 36
    assert metadata["resourceVersion"].isdigit()
    assert metadata["creationTimestamp"].endswith("Z")
    assert metadata["generation"] == 1
    assert (pod["kind"], pod["apiVersion"]) == ("Pod", "v1")


def test_second_create_of_a_name_is_409_already_exists(api: Api) -> None:
    api.pod("twice")
    status, answer = api.call("POST", api.pods, pod_object("twice"))
    assert (status, answer["reason"]) == (409, "AlreadyExists")


def test_i1_generate_name_appends_five_characters(api: Api) -> None:
    body = pod_object("x")
    body["metadata"] = {"generateName": "web-"}
    name = api.must("POST", api.pods, body)["metadata"]["name"]
    assert name.startswith("web-")
    assert len(name) == len("web-") + 5


def test_name_that_is_no_dns_name_is_422(api: Api) -> None:
    status, answer = api.call("POST", api.pods, pod_object("Not_A_Name"))
    assert (status, answer["reason"]) == (422, "Invalid")


def test_unknown_namespace_is_404_of_the_namespace(api: Api) -> None:
    status, answer = api.call("POST", "/api/v1/namespaces/nowhere/pods", pod_object("a"))
    assert (status, answer["details"]["kind"]) == (404, "namespaces")


def test_namespace_of_another_path_is_400(api: Api) -> None:
    body = pod_object("elsewhere")
    body["metadata"]["namespace"] = "kube-system"
    assert api.call("POST", api.pods, body)[0] == 400


def test_absent_object_is_a_status_and_an_unserved_path_is_not(api: Api) -> None:
    status, answer = api.call("GET", f"{api.pods}/absent")
    assert (status, answer["kind"], answer["reason"]) == (404, "Status", "NotFound")
    status, answer = api.call("GET", "/apis/nowhere.example/v1/things/absent")
    assert status == 404
    assert answer.get("kind") != "Status"


@pytest.mark.parametrize("content_type", [STRATEGIC, MERGE])
def test_stale_resource_version_in_a_patch_is_409(api: Api, content_type: str) -> None:
    path = _config_map(api, a="1")
    stale = api.must("GET", path)["metadata"]["resourceVersion"]
    api.patch(path, {"data": {"a": "2"}})
    status, answer = api.patch(path, {"metadata": {"resourceVersion": stale}, "data": {"a": "3"}}, content_type)
    assert (status, answer["reason"]) == (409, "Conflict")
    assert api.must("GET", path)["data"] == {"a": "2"}


@pytest.mark.parametrize("content_type", [STRATEGIC, MERGE])
def test_foreign_uid_in_a_patch_is_422_that_names_the_field(api: Api, content_type: str) -> None:
    path = _config_map(api)
    body = {"metadata": {"uid": "11111111-1111-1111-1111-111111111111"}}
    status, answer = api.patch(path, body, content_type)
    assert (status, answer["reason"]) == (422, "Invalid")
    assert answer["details"]["causes"][0]["field"] == "metadata.uid"


def test_foreign_uid_in_a_put_is_409(api: Api) -> None:
    path = _config_map(api)
    found = api.must("GET", path)
    found["metadata"]["uid"] = "11111111-1111-1111-1111-111111111111"
    assert api.call("PUT", path, found)[0] == 409


def test_patch_that_changes_nothing_moves_no_version(api: Api) -> None:
    path = _config_map(api, a="1")
    before = api.must("GET", path)["metadata"]["resourceVersion"]
    status, answer = api.patch(path, {"data": {"a": "1"}})
    assert (status, answer["metadata"]["resourceVersion"]) == (200, before)


def test_json_patch_test_guards_with_422(api: Api) -> None:
    path = _config_map(api, a="1")
    refused = [{"op": "test", "path": "/data/a", "value": "2"}, {"op": "remove", "path": "/data/a"}]
    assert api.patch(path, refused, JSON_PATCH)[0] == 422
    accepted = [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "add", "path": "/data/b", "value": "3"}]
    assert api.patch(path, accepted, JSON_PATCH)[1]["data"] == {"a": "1", "b": "3"}


def test_null_in_a_merge_patch_removes_a_key(api: Api) -> None:
    path = _config_map(api, a="1", b="2")
    assert api.patch(path, {"data": {"a": None}}, MERGE)[1]["data"] == {"b": "2"}


def test_unknown_patch_type_is_415(api: Api) -> None:
    assert api.patch(_config_map(api), {"data": {}}, "application/json")[0] == 415


def test_labels_select_by_equality_set_and_existence(api: Api) -> None:
    for name, tier in (("sel-a", "gold"), ("sel-b", "silver"), ("sel-c", "")):
        api.pod(name, labels={"suite": "selectors", **({"tier": tier} if tier else {})})

    def names(selector: str) -> list[str]:
        found = api.must("GET", api.pods, query={"labelSelector": selector})["items"]
        return [item["metadata"]["name"] for item in found]

    assert names("suite=selectors,tier=gold") == ["sel-a"]
    assert names("suite==selectors,tier!=gold") == ["sel-b", "sel-c"]
    assert names("suite=selectors,tier in (gold,silver)") == ["sel-a", "sel-b"]
    assert names("suite=selectors,tier notin (gold)") == ["sel-b", "sel-c"]
    assert names("suite=selectors,tier") == ["sel-a", "sel-b"]
    assert names("suite=selectors,!tier") == ["sel-c"]


def test_fields_select_pods_by_node_and_name(api: Api) -> None:
    name = api.bound()["metadata"]["name"]
    query = {"fieldSelector": f"spec.nodeName=nebula-test,metadata.name={name}"}
    found = api.must("GET", api.pods, query=query)["items"]
    assert [item["metadata"]["name"] for item in found] == [name]


def test_f7_secrets_are_not_selected_by_node(api: Api) -> None:
    path = f"/api/v1/namespaces/{api.namespace}/secrets"
    assert api.call("GET", path, query={"fieldSelector": "spec.nodeName=a"})[0] == 400


def test_pages_cover_everything_once_at_one_version(api: Api) -> None:
    for index in range(5):
        api.pod(f"page-{index}", labels={"suite": "pages"})
    query = {"labelSelector": "suite=pages", "limit": "2"}
    seen: list[str] = []
    versions = set()
    token = ""
    while True:
        page = api.must("GET", api.pods, query={**query, "continue": token} if token else query)
        seen += [item["metadata"]["name"] for item in page["items"]]
        versions.add(page["metadata"]["resourceVersion"])
        token = page["metadata"].get("continue", "")
        if not token:
            break
        assert len(page["items"]) == 2
    assert seen == [f"page-{index}" for index in range(5)]
    assert len(versions) == 1


def test_node_pool_refuses_a_strategic_patch_and_separates_status(api: Api) -> None:
    name = unique("pool")
    body = {"apiVersion": "nebula.inftyai.com/v1alpha1", "kind": "NodePool", "metadata": {"name": name}}
    spec = {"providers": [{"name": "runpod"}]}
    created = api.must("POST", NODE_POOLS, {**body, "spec": spec, "status": {"providers": "9"}})
    assert created.get("status", {}).get("providers") is None
    path = f"{NODE_POOLS}/{name}"
    assert api.patch(path, {"metadata": {"labels": {"a": "b"}}}, STRATEGIC)[0] == 415
    status, answer = api.patch(f"{path}/status", {"status": {"providers": "1"}, "spec": None}, MERGE)
    assert (status, answer["spec"], answer["status"]["providers"]) == (200, created["spec"], "1")
    assert answer["metadata"]["generation"] == 1


def test_micro_time_needs_six_digits(api: Api) -> None:
    name = unique("lease")
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}}
    good = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000000Z"}
    api.must("POST", LEASES, {**body, "spec": good})
    assert api.patch(f"{LEASES}/{name}", {"spec": {"renewTime": "2026-01-01T00:00:10Z"}}, MERGE)[0] == 422
    short = {**good, "renewTime": "2026-01-01T00:00:00Z"}
    assert api.call("POST", LEASES, {**body, "spec": short})[0] == 400
    later = {"spec": {"renewTime": "2026-01-01T00:00:10.000000Z"}}
    assert api.patch(f"{LEASES}/{name}", later, MERGE)[0] == 200


def test_event_must_be_in_the_namespace_of_its_object(api: Api) -> None:
    name = unique("event")
    involved = {"kind": "Pod", "apiVersion": "v1", "name": "a", "namespace": api.namespace}
    body = {"metadata": {"name": name}, "involvedObject": involved, "reason": "Tried", "type": "Normal", "count": 1}
    path = f"/api/v1/namespaces/{api.namespace}/events"
    api.must("POST", path, body)
    assert api.patch(f"{path}/{name}", {"count": 2}, MERGE)[1]["count"] == 2
    misplaced = {**body, "metadata": {"name": unique("event")}, "involvedObject": {**involved, "namespace": "default"}}
    assert api.call("POST", path, misplaced)[0] == 422


def test_secret_keeps_text_as_base64_and_its_type(api: Api) -> None:
    path = f"/api/v1/namespaces/{api.namespace}/secrets"
    api.must("POST", path, {"metadata": {"name": "texts"}, "stringData": {"a": "b"}})
    found = api.must("GET", f"{path}/texts")
    assert (found["data"], found["type"], found.get("stringData")) == ({"a": "Yg=="}, "Opaque", None)
    assert api.patch(f"{path}/texts", {"type": "other"})[0] == 422
    bad = {"metadata": {"name": "bad"}, "type": "kubernetes.io/dockerconfigjson", "data": {}}
    assert api.call("POST", path, bad)[0] == 422
