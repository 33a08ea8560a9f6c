"""The rules of DELETE. The same on the emulator and on a real server."""

from __future__ import annotations

import pytest

from tests.support.kubernetes_api import MERGE, Api, Object, unique

HELD = "example.com/held"


def _path(api: Api, pod: Object) -> str:
    return f"{api.pods}/{pod['metadata']['name']}"


def _gone(api: Api, path: str) -> bool:
    return api.call("GET", path)[0] == 404


def test_gated_pod_vanishes_at_once(api: Api) -> None:
    path = _path(api, api.pod())
    assert api.call("DELETE", path)[0] == 200
    assert _gone(api, path)


def test_bound_pod_waits_for_its_grace(api: Api) -> None:
    pod = api.bound(terminationGracePeriodSeconds=17)
    path = _path(api, pod)
    answer = api.must("DELETE", path)
    assert answer["metadata"]["deletionGracePeriodSeconds"] == 17
    found = api.must("GET", path)
    assert found["metadata"]["deletionTimestamp"]
    assert found["metadata"]["generation"] == pod["metadata"]["generation"] + 1


def test_grace_zero_ends_a_terminating_pod(api: Api) -> None:
    path = _path(api, api.bound())
    api.must("DELETE", path)
    assert not _gone(api, path)
    api.must("DELETE", path, {"gracePeriodSeconds": 0})
    assert _gone(api, path)


def test_y11_forced_deletion_takes_a_bound_pod_at_once(api: Api) -> None:
    path = _path(api, api.bound())
    api.must("DELETE", path, query={"gracePeriodSeconds": "0"})
    assert _gone(api, path)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_terminal_pod_has_no_grace(api: Api, phase: str) -> None:
    path = _path(api, api.bound())
    api.patch(f"{path}/status", {"status": {"phase": phase}})
    api.must("DELETE", path)
    assert _gone(api, path)


def test_uid_precondition_protects_a_recreated_pod(api: Api) -> None:
    pod = api.pod()
    path = _path(api, pod)
    api.must("DELETE", path)
    api.pod(pod["metadata"]["name"])
    body = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
    status, answer = api.call("DELETE", path, body)
    assert (status, answer["reason"]) == (409, "Conflict")
    assert not _gone(api, path)


def test_finalizer_holds_a_gated_pod_until_it_is_removed(api: Api) -> None:
    pod = api.pod()
    path = _path(api, pod)
    api.patch(path, {"metadata": {"finalizers": [HELD]}})
    api.must("DELETE", path)
    assert api.must("GET", path)["metadata"]["deletionTimestamp"]
    assert api.patch(path, {"metadata": {"finalizers": ["example.com/more"]}})[0] == 422
    api.patch(path, {"metadata": {"finalizers": None}}, MERGE)
    assert _gone(api, path)


def test_second_delete_cannot_make_the_grace_longer(api: Api) -> None:
    path = _path(api, api.bound(terminationGracePeriodSeconds=10))
    first = api.must("DELETE", path)["metadata"]["deletionTimestamp"]
    second = api.must("DELETE", path, {"gracePeriodSeconds": 600})["metadata"]
    assert (second["deletionTimestamp"], second["deletionGracePeriodSeconds"]) == (first, 10)


def test_absent_pod_is_404(api: Api) -> None:
    assert api.call("DELETE", f"{api.pods}/absent")[0] == 404


def test_object_without_grace_answers_success(api: Api) -> None:
    name = unique("map")
    path = f"/api/v1/namespaces/{api.namespace}/configmaps"
    api.must("POST", path, {"metadata": {"name": name}})
    answer = api.must("DELETE", f"{path}/{name}")
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    assert _gone(api, f"{path}/{name}")


def test_client_deletes_one_uid_and_says_when_it_was_gone(api: Api) -> None:
    pod = api.bound()
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    assert api.client.delete_pod(api.namespace, name, uid)
    assert not api.client.delete_pod(api.namespace, name, uid)
    recreated = api.bound(name)
    assert not api.client.delete_pod(api.namespace, name, uid)
    assert api.client.get_pod(api.namespace, name) is not None
    assert api.client.delete_pod(api.namespace, name, recreated["metadata"]["uid"])
