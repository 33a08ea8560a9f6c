"""What a Pod allows while gated, after it, and on its status. The same on the emulator and on a real server."""

from __future__ import annotations

import pytest

from tests.support.kubernetes_api import GATE, JSON_PATCH, MERGE, STRATEGIC, Api, Object, conditions, pod_object, unique

FOREIGN = "example.com/quota"


def _path(api: Api, pod: Object) -> str:
    return f"{api.pods}/{pod['metadata']['name']}"


def _release(pod: Object, **extra: object) -> Object:
    """The patch of a release, as the product writes it."""
    guard = {"uid": pod["metadata"]["uid"], "resourceVersion": pod["metadata"]["resourceVersion"]}
    freed = [{**item, "tolerationSeconds": None} for item in pod["spec"]["tolerations"]]
    tolerations = [{"key": "nebula.inftyai.com/provider", "operator": "Exists"}, *freed]
    spec = {
        "nodeSelector": {"nebula.inftyai.com/provider": "runpod"},
        "tolerations": tolerations,
        "schedulingGates": [{"$patch": "delete", "name": GATE}],
        **extra,
    }
    return {"metadata": guard, "spec": spec}


def test_gated_pod_says_so_and_has_default_tolerations(api: Api) -> None:
    pod = api.pod()
    scheduled = conditions(pod)["PodScheduled"]
    assert (scheduled["status"], scheduled["reason"]) == ("False", "SchedulingGated")
    assert pod["status"]["phase"] == "Pending"
    limited = {(item["key"], item["tolerationSeconds"]) for item in pod["spec"]["tolerations"]}
    assert limited == {("node.kubernetes.io/not-ready", 300), ("node.kubernetes.io/unreachable", 300)}


def test_default_toleration_is_not_added_beside_an_own_one(api: Api) -> None:
    own = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]
    pod = api.pod(tolerations=own)
    assert [item["key"] for item in pod["spec"]["tolerations"]] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]
    assert "tolerationSeconds" not in pod["spec"]["tolerations"][0]


def test_status_sent_at_creation_is_dropped(api: Api) -> None:
    body = pod_object(unique("pod"))
    body["status"] = {"phase": "Running", "podIP": "10.0.0.1"}
    status = api.must("POST", api.pods, body)["status"]
    assert (status["phase"], status.get("podIP")) == ("Pending", None)


def test_gate_and_node_name_exclude_each_other(api: Api) -> None:
    status, answer = api.call("POST", api.pods, pod_object(unique("pod"), nodeName="nebula-test"))
    assert (status, answer["reason"]) == (422, "Invalid")


def test_gated_pod_cannot_be_bound(api: Api) -> None:
    pod = api.pod()
    name = pod["metadata"]["name"]
    target = {"apiVersion": "v1", "kind": "Node", "name": "nebula-test"}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    assert api.call("POST", f"{_path(api, pod)}/binding", binding)[0] == 409


def test_release_in_one_guarded_patch(api: Api) -> None:
    pod = api.pod()
    status, released = api.patch(_path(api, pod), _release(pod))
    assert status == 200, released
    assert "schedulingGates" not in released["spec"]
    assert released["spec"]["nodeSelector"] == {"nebula.inftyai.com/provider": "runpod"}
    assert all("tolerationSeconds" not in item for item in released["spec"]["tolerations"])
    assert released["metadata"]["generation"] == 2


def test_y9_second_release_from_the_same_read_is_409(api: Api) -> None:
    pod = api.pod()
    assert api.patch(_path(api, pod), _release(pod))[0] == 200
    assert api.patch(_path(api, pod), _release(pod))[0] == 409


def test_release_of_a_recreated_name_is_422(api: Api) -> None:
    pod = api.pod()
    api.must("DELETE", _path(api, pod))
    api.pod(pod["metadata"]["name"])
    body = _release(pod)
    del body["metadata"]["resourceVersion"]
    assert api.patch(_path(api, pod), body)[0] == 422


def test_strategic_patch_leaves_a_foreign_gate_and_merge_patch_does_not(api: Api) -> None:
    pod = api.pod(schedulingGates=[{"name": FOREIGN}, {"name": GATE}])
    status, answer = api.patch(_path(api, pod), _release(pod))
    assert (status, answer["spec"]["schedulingGates"]) == (200, [{"name": FOREIGN}])
    assert "schedulingGates" not in api.patch(_path(api, pod), {"spec": {"schedulingGates": []}}, MERGE)[1]["spec"]


def test_json_patch_removes_a_gate_by_index_behind_a_test(api: Api) -> None:
    pod = api.pod()
    operations = [
        {"op": "test", "path": "/spec/schedulingGates/0/name", "value": GATE},
        {"op": "remove", "path": "/spec/schedulingGates/0"},
    ]
    assert api.patch(_path(api, pod), operations, JSON_PATCH)[0] == 200
    assert api.patch(_path(api, pod), operations, JSON_PATCH)[0] == 422


def test_gate_cannot_be_added_later(api: Api) -> None:
    pod = api.pod()
    assert api.patch(_path(api, pod), {"spec": {"schedulingGates": [{"name": FOREIGN}]}})[0] == 422


def test_node_selector_may_only_grow_and_only_while_gated(api: Api) -> None:
    pod = api.pod(nodeSelector={"a": "1"})
    path = _path(api, pod)
    assert api.patch(path, {"spec": {"nodeSelector": {"a": "2"}}})[0] == 422
    assert api.patch(path, {"spec": {"nodeSelector": {"a": None}}})[0] == 422
    assert api.patch(path, {"spec": {"nodeSelector": {"b": "2"}}})[1]["spec"]["nodeSelector"] == {"a": "1", "b": "2"}
    api.patch(path, {"spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]}})
    assert api.patch(path, {"spec": {"nodeSelector": {"c": "3"}}})[0] == 422


def test_tolerations_may_be_added_and_freed_but_not_lost(api: Api) -> None:
    own = {"key": "example.com/own", "operator": "Exists"}
    pod = api.bound(tolerations=[own])
    path, listed = _path(api, pod), pod["spec"]["tolerations"]
    assert api.patch(path, {"spec": {"tolerations": listed[1:]}})[0] == 422
    assert api.patch(path, {"spec": {"tolerations": [{**own, "effect": "NoSchedule"}, *listed[1:]]}})[0] == 422
    freed = [{key: value for key, value in item.items() if key != "tolerationSeconds"} for item in listed[1:]]
    status, answer = api.patch(path, {"spec": {"tolerations": [*freed, own, {"operator": "Exists", "key": "x"}]}})
    assert status == 200
    assert len(answer["spec"]["tolerations"]) == 4
    assert "tolerationSeconds" not in answer["spec"]["tolerations"][0]


def test_default_tolerations_come_back_when_a_patch_leaves_them_out(api: Api) -> None:
    pod = api.bound()
    status, answer = api.patch(_path(api, pod), {"spec": {"tolerations": []}})
    assert (status, answer["spec"]["tolerations"]) == (200, pod["spec"]["tolerations"])


@pytest.mark.parametrize(
    "change",
    [
        {"containers": [{"name": "main", "env": [{"name": "A", "value": "1"}]}]},
        {"containers": [{"name": "main", "resources": {"limits": {"cpu": "9"}}}]},
        {"restartPolicy": "Never"},
        {"serviceAccountName": "other"},
    ],
)
def test_the_rest_of_a_spec_is_immutable(api: Api, change: Object) -> None:
    pod = api.pod()
    status, answer = api.patch(_path(api, pod), {"spec": change})
    assert (status, answer["reason"]) == (422, "Invalid")


def test_image_labels_and_a_lower_deadline_may_change(api: Api) -> None:
    pod = api.pod(activeDeadlineSeconds=100)
    path = _path(api, pod)
    changed = {"activeDeadlineSeconds": 50, "containers": [{"name": "main", "image": "busybox:1.37"}]}
    status, answer = api.patch(path, {"metadata": {"labels": {"a": "b"}}, "spec": changed})
    assert (status, answer["spec"]["containers"][0]["image"]) == (200, "busybox:1.37")
    assert answer["metadata"]["generation"] == 2
    assert api.patch(path, {"spec": {"activeDeadlineSeconds": 60}})[0] == 422


def test_status_is_separate_from_spec_both_ways(api: Api) -> None:
    pod = api.bound()
    path = _path(api, pod)
    status, answer = api.patch(path, {"status": {"phase": "Failed"}})
    assert (status, answer["status"]["phase"]) == (200, "Pending")
    body = {"status": {"phase": "Running"}, "spec": {"activeDeadlineSeconds": 5}}
    status, answer = api.patch(f"{path}/status", body)
    assert (status, answer["status"]["phase"]) == (200, "Running")
    assert "activeDeadlineSeconds" not in answer["spec"]


def test_conditions_merge_by_type_under_strategic_and_not_under_merge(api: Api) -> None:
    pod = api.bound()
    path = f"{_path(api, pod)}/status"
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    merged = api.patch(path, {"status": {"conditions": [ready]}})[1]
    assert {"PodScheduled", "Ready"} <= set(conditions(merged))
    replaced = api.patch(path, {"status": {"conditions": [ready]}}, MERGE)[1]
    assert set(conditions(replaced)) == {"Ready"}


def test_phases_may_go_back(api: Api) -> None:
    path = f"{_path(api, api.bound())}/status"
    assert api.patch(path, {"status": {"phase": "Failed"}})[0] == 200
    assert api.patch(path, {"status": {"phase": "Running"}})[0] == 200


def test_host_name_in_pod_ip_refuses_the_whole_patch(api: Api) -> None:
    path = f"{_path(api, api.bound())}/status"
    body = {"status": {"phase": "Running", "podIP": "pod.example.com", "podIPs": [{"ip": "pod.example.com"}]}}
    assert api.patch(path, body)[0] == 422


def test_changed_pod_ip_needs_the_replace_directive(api: Api) -> None:
    path = f"{_path(api, api.bound())}/status"
    first = {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}
    assert api.patch(path, {"status": first})[0] == 200
    replaced = {"podIP": "10.0.0.2", "podIPs": [{"$patch": "replace"}, {"ip": "10.0.0.2"}]}
    status, answer = api.patch(path, {"status": replaced})
    assert (status, answer["status"]["podIPs"]) == (200, [{"ip": "10.0.0.2"}])
    merged = {"podIP": "10.0.0.3", "podIPs": [{"ip": "10.0.0.3"}]}
    assert api.patch(path, {"status": merged})[0] == 422


def test_lone_pod_ip_wins_over_the_list(api: Api) -> None:
    path = f"{_path(api, api.bound())}/status"
    assert api.patch(path, {"status": {"podIP": "10.0.0.1"}})[1]["status"]["podIPs"] == [{"ip": "10.0.0.1"}]
    assert api.patch(path, {"status": {"podIP": "10.0.0.2"}})[1]["status"]["podIPs"] == [{"ip": "10.0.0.2"}]
    ignored = api.patch(path, {"status": {"podIPs": [{"$patch": "replace"}, {"ip": "10.0.0.3"}]}})[1]["status"]
    assert (ignored["podIP"], ignored["podIPs"]) == ("10.0.0.2", [{"ip": "10.0.0.2"}])


def test_new_item_of_a_merged_list_comes_first(api: Api) -> None:
    path = f"{_path(api, api.bound())}/status"
    kinds = [{"type": f"example.com/{name}", "status": "True"} for name in "abc"]
    api.patch(path, {"status": {"conditions": kinds}}, MERGE)
    changed = [{"type": "example.com/new", "status": "True"}, {"type": "example.com/b", "status": "False"}]
    listed = api.patch(path, {"status": {"conditions": changed}})[1]["status"]["conditions"]
    assert [item["type"].rpartition("/")[2] for item in listed] == ["new", "a", "b", "c"]


@pytest.mark.parametrize("content_type", [STRATEGIC, MERGE])
@pytest.mark.parametrize("status", [{"startTime": "yesterday"}, {"conditions": "none"}])
def test_value_that_cannot_be_decoded_is_422_in_a_patch(api: Api, status: Object, content_type: str) -> None:
    path = f"{_path(api, api.bound())}/status"
    code, answer = api.patch(path, {"status": status}, content_type)
    assert (code, answer["details"]["causes"][0]["field"]) == (422, "patch")


def test_container_statuses_are_replaced_whole(api: Api) -> None:
    path = f"{_path(api, api.bound())}/status"
    entry = {"name": "main", "image": "i", "imageID": "", "ready": False, "restartCount": 0}
    waiting = {**entry, "state": {"waiting": {"reason": "Pulling"}}}
    running_now = {**entry, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
    api.patch(path, {"status": {"containerStatuses": [waiting]}})
    answer = api.patch(path, {"status": {"containerStatuses": [running_now]}})[1]
    assert [set(item["state"]) for item in answer["status"]["containerStatuses"]] == [{"running"}]


@pytest.mark.parametrize(("policy", "code", "expected"), [("Never", 1, 422), ("OnFailure", 0, 422), ("Always", 1, 200)])
def test_ended_container_stays_ended_by_restart_policy(api: Api, policy: str, code: int, expected: int) -> None:
    path = f"{_path(api, api.bound(restartPolicy=policy))}/status"
    entry = {"name": "main", "image": "i", "imageID": "", "ready": False, "restartCount": 0}
    times = {"startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:01:00Z"}
    ended = {**entry, "state": {"terminated": {"exitCode": code, **times}}}
    assert api.patch(path, {"status": {"containerStatuses": [ended]}})[0] == 200
    again = {**entry, "state": {"running": {"startedAt": "2026-01-01T00:02:00Z"}}}
    assert api.patch(path, {"status": {"containerStatuses": [again]}})[0] == expected


def test_y1_extended_resource_needs_a_limit_equal_to_its_request(api: Api) -> None:
    def create(resources: Object) -> int:
        containers = [{"name": "main", "image": "i", "resources": resources}]
        return api.call("POST", api.pods, pod_object(unique("pod"), containers=containers))[0]

    assert create({"limits": {"nvidia.com/gpu": "1"}}) == 201
    assert create({"requests": {"nvidia.com/gpu": "1"}}) == 422
    assert create({"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "2"}}) == 422
    assert create({"limits": {"nvidia.com/gpu": "500m"}}) == 422


def test_limits_become_requests(api: Api) -> None:
    containers = [{"name": "main", "image": "i", "resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}]
    pod = api.pod(containers=containers)
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "2", "memory": "1Gi"}
    assert pod["status"]["qosClass"] == "Guaranteed"


@pytest.mark.parametrize("content_type", [STRATEGIC, MERGE])
def test_condition_of_ours_is_accepted_while_gated(api: Api, content_type: str) -> None:
    pod = api.pod()
    ours = {"type": "nebula.inftyai.com/Released", "status": "False", "reason": "Deferred", "message": "no capacity"}
    kept = conditions(pod)["PodScheduled"]
    body = {"status": {"conditions": [kept, ours] if content_type == MERGE else [ours]}}
    status, answer = api.patch(f"{_path(api, pod)}/status", body, content_type)
    assert (status, set(conditions(answer))) == (200, {"PodScheduled", "nebula.inftyai.com/Released"})
