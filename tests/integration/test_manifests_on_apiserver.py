"""What ``cluster/`` holds, applied to a real API server: strictly validated, and running where it should.

``test_cluster_samples`` shows that each sample's Pods become instances; here the server's own rules speak.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.gating import choose, install
from tests.support.kubernetes_api import GATE, Api, unique
from tests.support.kubernetes_apply import APPLY, CLUSTER_FOLDER, STRICT, apply, await_true, documents, path_of
from tests.support.kubernetes_targets import NO_ASSETS
from tests.support.kustomize import manifests
from tests.support.world import pod_object

pytestmark = [pytest.mark.apiserver, pytest.mark.network]
ASSETS = os.environ.get("KUBEBUILDER_ASSETS")
SAMPLES = sorted((CLUSTER_FOLDER / "samples").glob("*.yaml"))
FOLDERS = ("", "account", "forwarder")
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
Object = dict[str, Any]


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    if not ASSETS:
        pytest.skip(NO_ASSETS)
    from tests.support.kubernetes_apiserver import started

    with started(Path(ASSETS)) as real:
        yield real


@pytest.fixture(scope="module")
def api(server: Any) -> Api:
    """An administrator, on a server that has what ``kubectl apply -k cluster/`` installs."""
    found = Api(server.session(), server.url, server.client())
    apply(found, manifests(CLUSTER_FOLDER))
    await_true(lambda: _try(found, _pod(gates=None))[0] != 201, "an ungated Pod is admitted")
    return found


@pytest.fixture(scope="module")
def gating(api: Api) -> Api:
    """The same with the policy that adds the gate."""
    apply(api, documents(CLUSTER_FOLDER / "gating/add-gate.yaml"))
    await_true(lambda: _try(api, _pod(gates=None))[0] == 201, "the policy adds no gate")
    return api


def _pod(gates: list[str] | None, labels: Object | None = None, **spec: Any) -> Object:
    listed = None if gates is None else [{"name": name} for name in gates]
    base = pod_object(unique("p"), schedulingGates=listed, **spec)
    base["spec"] = {key: value for key, value in base["spec"].items() if value is not None}
    if labels is not None:
        base["metadata"]["labels"] = labels
    return base


def _try(api: Api, pod: Object, namespace: str = "default") -> tuple[int, Object]:
    return api.call("POST", f"/api/v1/namespaces/{namespace}/pods", pod, query={"dryRun": "All", **STRICT})


def _gates(answer: Object) -> list[str]:
    return [gate["name"] for gate in answer["spec"].get("schedulingGates", [])]


def test_without_the_adding_policy_a_pod_without_gate_is_told_what_it_lacks(api: Api) -> None:
    api.call("DELETE", f"{ADMISSION}/mutatingadmissionpolicybindings/nebula-add-gate")
    await_true(lambda: _try(api, _pod(gates=None))[0] != 201, "the adding policy stays")
    status, answer = _try(api, _pod(gates=None))
    assert status == 422
    assert f"schedulingGates: [{{name: {GATE}}}]" in answer["message"]
    assert _try(api, _pod(gates=[GATE]))[0] == 201


@pytest.mark.parametrize(
    ("given", "kept"),
    [(None, [GATE]), ([GATE], [GATE]), (["other.example/gate"], ["other.example/gate", GATE])],
    ids=["none", "ours", "another"],
)
def test_the_gate_is_there_once_and_others_stay(gating: Api, given: list[str] | None, kept: list[str]) -> None:
    status, answer = _try(gating, _pod(gates=given))
    assert status == 201, answer
    assert sorted(_gates(answer)) == sorted(kept)


@pytest.mark.parametrize("labels", [{}, {"nebula.inftyai.com/enabled": "false"}], ids=["none", "false"])
def test_a_pod_that_is_not_opted_in_is_left_alone(gating: Api, labels: dict[str, str]) -> None:
    status, answer = _try(gating, _pod(gates=None, labels=labels))
    assert status == 201, answer
    assert _gates(answer) == []


@pytest.mark.parametrize("namespace", ["kube-system", "kube-node-lease", "kube-public"])
def test_system_namespaces_are_left_alone(gating: Api, namespace: str) -> None:
    status, answer = _try(gating, _pod(gates=None), namespace)
    assert status == 201, answer
    assert _gates(answer) == []


def test_a_pod_that_names_its_node_is_refused_rather_than_run_there(gating: Api) -> None:
    status, answer = _try(gating, _pod(gates=None, nodeName="worker-1"))
    assert status == 422
    assert GATE in answer["message"]


def test_discovery_names_the_policy_that_this_server_can_run(api: Api) -> None:
    served = {one["name"] for one in api.must("GET", ADMISSION)["resources"]}
    chosen = choose(served)
    assert chosen is not None
    assert chosen[0] == "add-gate.yaml"


@pytest.mark.parametrize("folder", FOLDERS, ids=["cluster", "account", "forwarder"])
def test_each_kustomization_is_accepted_field_by_field(api: Api, folder: str) -> None:
    for wanted in manifests(CLUSTER_FOLDER / folder):
        (kept,) = apply(api, [wanted])
        assert kept["kind"] == wanted["kind"]


def test_the_forwarder_s_pod_is_as_restricted_as_its_namespace_wants(api: Api) -> None:
    (deployment,) = [one for one in manifests(CLUSTER_FOLDER / "forwarder") if one["kind"] == "Deployment"]
    pod = _pod_of(deployment)
    status, answer = _try(api, pod, "nebula-system")
    assert status == 201, answer
    pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    assert _try(api, pod, "nebula-system")[0] == 403


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_each_sample_is_applied_and_its_pod_gated(gating: Api, path: Path) -> None:
    for sample in documents(path):
        (kept,) = apply(gating, [sample])
        if sample["kind"] in ("Secret", "NodePool"):
            continue
        status, answer = _try(gating, _pod_of(kept))
        assert status == 201, answer
        assert _gates(answer) == [GATE]


def test_an_unknown_field_would_have_been_refused(api: Api) -> None:
    (sample,) = documents(CLUSTER_FOLDER / "samples/nodepool-runpod.yaml")
    sample["spec"]["providerz"] = []
    query = {"fieldManager": "test", "force": "true", **STRICT}
    status, answer = api.call("PATCH", path_of(api, sample), sample, query=query, content_type=APPLY)
    assert status in (400, 500), answer
    assert "providerz" in answer["message"]


def _pod_of(workload: Object) -> Object:
    """The Pod that a workload's controller makes."""
    if workload["kind"] == "Pod":
        return {**workload, "metadata": {"name": unique("p"), "labels": workload["metadata"]["labels"]}}
    template = workload["spec"]["template"]
    metadata = {"name": unique("p"), "labels": template["metadata"]["labels"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl here")
def test_kubectl_installs_all_of_it(server: Any, api: Api, tmp_path: Path) -> None:
    authority = base64.b64encode(server.certificate.read_bytes()).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server.url, "certificate-authority-data": authority}}],
        "users": [{"name": "u", "user": {"token": "admin-token"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    (tmp_path / "config").write_text(json.dumps(config))
    kubectl = ["kubectl", f"--kubeconfig={tmp_path / 'config'}", f"--cache-dir={tmp_path / 'cache'}"]
    for arguments in (["apply", "-k", "cluster"], ["apply", "-k", "cluster/account"]):
        done = subprocess.run(
            [*kubectl, *arguments], cwd=CLUSTER_FOLDER.parent, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
    assert install(kubectl, apply=True) == 0
    assert api.call("GET", f"{ADMISSION}/mutatingadmissionpolicies/nebula-add-gate")[0] == 200
