"""The fence on a real API server: what RBAC alone lets our identity do to others, and the fence refuses.

Each call is tried as a dry run: first with the fence's binding taken away, where it must pass, then under it.
That the functions' whole life passes under the fence shows ``test_functions_on_apiserver``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.kubernetes_api import GATE, LEASES, STRATEGIC, Api, pod_object
from tests.support.kubernetes_apply import apply, await_true, installation
from tests.support.kubernetes_targets import NO_ASSETS

pytestmark = [pytest.mark.apiserver, pytest.mark.network]
ASSETS = os.environ.get("KUBEBUILDER_ASSETS")
BINDING = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/nebula-fence"
PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/api/v1/namespaces/default/events"
NODES = "/api/v1/nodes"
OURS, FOREIGN, GONE = f"{PODS}/ours", f"{PODS}/foreign", f"{PODS}/elsewhere"
PROVIDER = "nebula.inftyai.com/provider"
Object = dict[str, Any]


def _metadata(**fields: Any) -> Object:
    return {"metadata": fields}


def _node(name: str, **fields: Any) -> Object:
    taint = {"key": PROVIDER, "value": "x", "effect": "NoSchedule"}
    labels = {PROVIDER: name.removeprefix("nebula-")}
    node: Object = {"kind": "Node", "apiVersion": "v1", **_metadata(name=name, labels=labels)}
    return {**node, "spec": {"taints": [taint]}, **fields}


def _lease(name: str) -> Object:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        **_metadata(name=name, namespace="kube-node-lease"),
    }


def _event(component: str, kind: str = "Pod", name: str = "said") -> Object:
    about = {"kind": kind, "apiVersion": "v1", "name": "foreign", "namespace": "default"}
    event: Object = {"apiVersion": "v1", "kind": "Event", **_metadata(name=name, namespace="default")}
    return {**event, "involvedObject": about, "reason": "Said", "type": "Normal", "reportingComponent": component}


ADDRESS = {"addresses": [{"type": "InternalIP", "address": "10.1.1.1"}]}
#: A second delete with the same grace changes nothing, and is not even shown to admission.
AT_ONCE = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "dryRun": ["All"]}
INJECTED = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("not-ready", "unreachable")
]
TOLERATES_ALL = {"spec": {"tolerations": [*INJECTED, {"operator": "Exists"}]}}
#: name → method, path, body, a word of the fence's message.
REFUSED: dict[str, tuple[str, str, Object | None, str]] = {
    "annotate a foreign Pod": ("PATCH", FOREIGN, _metadata(annotations={"nebula.inftyai.com/claim": "c"}), "opted in"),
    "opt a foreign Pod in": ("PATCH", FOREIGN, _metadata(labels={"nebula.inftyai.com/enabled": "true"}), "opted in"),
    "another image in a foreign Pod": (
        "PATCH",
        FOREIGN,
        {"spec": {"containers": [{"name": "main", "image": "evil"}]}},
        "opted in",
    ),
    "fail a foreign Pod": ("PATCH", f"{FOREIGN}/status", {"status": {"phase": "Failed"}}, "opted in"),
    "delete a foreign Pod": ("DELETE", FOREIGN, None, "opted in"),
    "delete an opted-in Pod that nobody deleted": ("DELETE", OURS, AT_ONCE, "others began"),
    "delete an opted-in Pod on another Node": ("DELETE", GONE, AT_ONCE, "its own Nodes"),
    "fail an opted-in Pod on another Node": (
        "PATCH",
        f"{GONE}/status",
        {"status": {"phase": "Failed"}},
        "another Node",
    ),
    "another image": ("PATCH", OURS, {"spec": {"containers": [{"name": "main", "image": "evil"}]}}, "images"),
    "a deadline": ("PATCH", OURS, {"spec": {"activeDeadlineSeconds": 1}}, "deadlines"),
    "a label": ("PATCH", OURS, _metadata(labels={"app": "victim"}), "labels"),
    "take the label off": ("PATCH", OURS, _metadata(labels={"nebula.inftyai.com/enabled": None}), "labels"),
    "a label by way of status": ("PATCH", f"{OURS}/status", _metadata(labels={"app": "victim"}), "labels"),
    "a finalizer": ("PATCH", OURS, _metadata(finalizers=["a.example/b"]), "finalizers"),
    "an owner": (
        "PATCH",
        OURS,
        _metadata(ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "y"}]),
        "owners",
    ),
    "a foreign annotation": ("PATCH", OURS, _metadata(annotations={"a.example/b": "c"}), "annotations"),
    "take a foreign annotation off": ("PATCH", OURS, _metadata(annotations={"kept.example/a": None}), "annotations"),
    "the user's own annotation": (
        "PATCH",
        OURS,
        _metadata(annotations={"nebula.inftyai.com/ingress-ports": "22"}),
        "annotations",
    ),
    "a foreign gate off": (
        "PATCH",
        OURS,
        {"spec": {"schedulingGates": [{"$patch": "delete", "name": "other.example/gate"}]}},
        "our gate",
    ),
    "a foreign nodeSelector": ("PATCH", OURS, {"spec": {"nodeSelector": {"a": "b"}}}, "nodeSelector"),
    "tolerate every taint": ("PATCH", OURS, TOLERATES_ALL, "tolerations"),
    "an address": ("PATCH", f"{OURS}/status", {"status": {"podIP": "10.1.1.1"}}, "address"),
    "a Node of another name": ("POST", NODES, _node("worker-9"), "called nebula-"),
    "a Node without the taint": ("POST", NODES, _node("nebula-x", spec={}), "taint"),
    "a Node with an address": ("POST", NODES, _node("nebula-x", status=ADDRESS), "address"),
    "a Node that a cloud controller takes for a machine": (
        "POST",
        NODES,
        _node("nebula-x", spec={**_node("nebula-x")["spec"], "providerID": "aws:///us-east-1a/i-0123456789abcdef0"}),
        "providerID",
    ),
    "delete a Node that is not ours": ("DELETE", f"{NODES}/nebula-runpod", None, "not one of"),
    "the status of a Node that is not ours": (
        "PATCH",
        f"{NODES}/nebula-runpod/status",
        {"status": {"capacity": {"pods": "1"}}},
        "not one of",
    ),
    "another Node's Lease": ("POST", LEASES, _lease("worker-9"), "Lease"),
    "another component's Event": ("POST", EVENTS, _event("kubelet"), "Events"),
    "an Event about a Node": ("POST", EVENTS, _event("nebula", "Node"), "Events"),
    "change another component's Event": ("PATCH", f"{EVENTS}/kubelets", {"count": 9}, "Events"),
}
#: The same kinds of call as the functions make them.
PASSING: dict[str, tuple[str, str, Object | None]] = {
    "our annotation": ("PATCH", OURS, _metadata(annotations={"nebula.inftyai.com/withdrawn-at": "1"})),
    "our gate off": ("PATCH", OURS, {"spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]}}),
    "our status": ("PATCH", f"{OURS}/status", {"status": {"phase": "Failed", "reason": "Preempted"}}),
    "our Node": ("POST", NODES, _node("nebula-x")),
    "our Lease": ("POST", LEASES, _lease("nebula-runpod")),
    "our Event": ("POST", EVENTS, _event("nebula")),
}


@pytest.fixture(scope="module")
def apis() -> Iterator[tuple[Api, Api]]:
    """An administrator's and our identity's view of a server with the whole installation."""
    if not ASSETS:
        pytest.skip(NO_ASSETS)
    from tests.support.kubernetes_apiserver import NEBULA, started

    with started(Path(ASSETS)) as real:
        admin = Api(real.session(), real.url, real.client())
        apply(admin, installation())
        _furnish(admin)
        ours = Api.__new__(Api)
        ours._session, ours._server = real.session(NEBULA), real.url
        yield admin, ours


def _furnish(admin: Api) -> None:
    """One gated Pod of ours, one bound elsewhere, one foreign Pod, a Node of a confusing name, a kubelet's Event."""
    ours = pod_object("ours", schedulingGates=[{"name": GATE}, {"name": "other.example/gate"}])
    ours["metadata"]["annotations"] = {"kept.example/a": "b"}
    admin.must("POST", PODS, ours)
    admin.must("POST", PODS, pod_object("foreign", labels={"app": "database"}, schedulingGates=None))
    elsewhere = pod_object("elsewhere", labels={"app": "database"}, schedulingGates=None, nodeName="worker-1")
    admin.must("POST", PODS, elsewhere)
    opted_in = _metadata(labels={"nebula.inftyai.com/enabled": "true"})
    assert admin.patch(GONE, opted_in)[0] == 200
    admin.must("DELETE", GONE)
    admin.must("POST", NODES, _node("nebula-runpod", spec={}) | _metadata(name="nebula-runpod"))
    admin.must("POST", EVENTS, _event("kubelet", name="kubelets"))


@pytest.fixture(scope="module")
def unfenced(apis: tuple[Api, Api]) -> dict[str, int]:
    """Every refused call's status with RBAC alone."""
    admin, ours = apis
    binding = admin.must("GET", BINDING)
    admin.must("DELETE", BINDING)
    try:
        await_true(lambda: _try(ours, "DELETE", FOREIGN, None)[0] == 200, "the fence does not come down")
        return {name: _try(ours, *call[:3])[0] for name, call in REFUSED.items()}
    finally:
        kept = {key: value for key, value in binding.items() if key != "metadata"}
        apply(admin, [{**kept, "metadata": {"name": "nebula-fence"}}])
        await_true(lambda: _try(ours, "DELETE", FOREIGN, None)[0] != 200, "the fence does not come up")


def _try(api: Api, method: str, path: str, body: Object | None) -> tuple[int, Object]:
    content = STRATEGIC if method == "PATCH" else "application/json"
    if method == "PATCH" and path.startswith(EVENTS):
        content = "application/merge-patch+json"
    return api.call(method, path, body, query={"dryRun": "All"}, content_type=content)


@pytest.mark.parametrize("name", REFUSED)
def test_what_roles_alone_would_allow_is_refused(apis: tuple[Api, Api], unfenced: dict[str, int], name: str) -> None:
    method, path, body, word = REFUSED[name]
    assert unfenced[name] in (200, 201, 202), "RBAC or the API server refuses it already: the fence adds nothing"
    status, answer = _try(apis[1], method, path, body)
    assert status == 403, answer
    assert "nebula-fence" in answer["message"]
    assert word in answer["message"]


@pytest.mark.parametrize("name", PASSING)
def test_what_the_functions_write_passes(apis: tuple[Api, Api], unfenced: dict[str, int], name: str) -> None:
    status, answer = _try(apis[1], *PASSING[name])
    assert status in (200, 201), answer


@pytest.mark.parametrize("name", ["another image in a foreign Pod", "delete a foreign Pod", "a Node of another name"])
def test_nobody_else_meets_the_fence(apis: tuple[Api, Api], unfenced: dict[str, int], name: str) -> None:
    status, answer = _try(apis[0], *REFUSED[name][:3])
    assert status in (200, 201), answer
