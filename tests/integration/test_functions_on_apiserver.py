"""The functions on a real API server, as an administrator and as each identity that ``cluster/`` lets in.

For the latter two RBAC grants what our manifests grant and nothing more, and the fence is up. The Deployment's
controllers and the scheduler are stand-ins, the provider is simulated; every write is validated strictly.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from nebula.domain.claim import Phase, claim_id_for
from nebula.events.details import DetailType

from tests.support.kubernetes_api import LEASES, NODE_POOLS, Api, unique
from tests.support.kubernetes_apply import apply, await_true, documents, installation
from tests.support.kubernetes_targets import NO_ASSETS
from tests.support.real_world import PODS, RealWorld
from tests.support.world import CLUSTER, pool_object, running

pytestmark = [pytest.mark.apiserver, pytest.mark.network]
ASSETS = os.environ.get("KUBEBUILDER_ASSETS")
GATE = {"name": "nebula.inftyai.com/provider-selection"}
ACCOUNT = "/api/v1/namespaces/nebula-system/serviceaccounts/nebula-control-plane"
SUBJECTS = [
    {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "nebula:control-plane"},
    {"kind": "ServiceAccount", "name": "nebula-control-plane", "namespace": "nebula-system"},
]
#: What the page tells an operator to do for a namespace whose Pods refer to Secrets.
REFERENCES = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "RoleBinding",
    "metadata": {"name": "nebula-references", "namespace": "default"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "nebula-references"},
    "subjects": SUBJECTS,
}


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[object, Api]]:
    if not ASSETS:
        pytest.skip(NO_ASSETS)
    from tests.support.kubernetes_apiserver import started

    with started(Path(ASSETS)) as real:
        api = Api(real.session(), real.url, real.client())
        account = documents(Path(__file__).parents[2] / "cluster/account/service-account.yaml")
        apply(api, [*installation(), *account, REFERENCES])
        await_true(lambda: _gated_when_tried(api), "the policy adds no gate")
        yield real, api


@pytest.fixture(params=["administrator", "group", "service account"])
def world(request: pytest.FixtureRequest, server: tuple[object, Api]) -> RealWorld:
    from tests.support.kubernetes_apiserver import ADMIN, NEBULA, RealServer

    real, api = server
    assert isinstance(real, RealServer)
    tokens = {"administrator": ADMIN, "group": NEBULA}
    if request.param not in tokens:
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        tokens[request.param] = api.must("POST", f"{ACCOUNT}/token", asked)["status"]["token"]
    apply(api, [pool_object("runpod")])
    return RealWorld(api, real.transport(tokens[request.param]))


def _gated_when_tried(api: Api) -> bool:
    labels = {"nebula.inftyai.com/enabled": "true"}
    spec = {"containers": [{"name": "main", "image": "busybox"}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "labels": labels}, "spec": spec}
    status, answer = api.call("POST", PODS, body, query={"dryRun": "All"})
    return status == 201 and answer["spec"].get("schedulingGates") == [GATE]


def _with_secret(world: RealWorld) -> list[dict[str, object]]:
    """Containers that refer to a Secret, which exists."""
    name = unique("secret")
    metadata = {"name": name, "namespace": "default"}
    apply(world.raw, [{"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"key": "value"}}])
    reference = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": name, "key": "key"}}}
    limits = {"nvidia.com/gpu": "1"}
    return [{"name": "main", "image": "registry.example.com/t:1", "env": [reference], "resources": {"limits": limits}}]


def test_a_pod_of_a_deployment_lives_and_ends(world: RealWorld) -> None:
    name = unique("train")
    created = world.deploy(name, containers=_with_secret(world))
    assert created["spec"]["schedulingGates"] == [GATE]
    world.announce(DetailType.POD_GATED, created)
    world.pump()
    for _ in range(4):
        world.bind()
        world.run(1)
    pod = world.pod(name)
    assert pod is not None
    assert pod["spec"]["nodeName"] == "nebula-runpod"
    assert pod["spec"]["nodeSelector"] == {"nebula.inftyai.com/provider": "runpod"}
    assert running(pod)
    assert world.billed() == [pod["metadata"]["annotations"]["nebula.inftyai.com/instance-id"]]
    assert world.raw.must("GET", f"{LEASES}/nebula-runpod")["spec"]["holderIdentity"] == "nebula-runpod"
    told = world.raw.must(
        "GET", "/api/v1/namespaces/default/events", query={"fieldSelector": f"involvedObject.name={name}"}
    )
    assert "Released" in {event["reason"] for event in told["items"]}
    assert "status" in world.raw.must("GET", f"{NODE_POOLS}/pool")

    world.delete_pod(name)
    world.pump()
    world.run(2)
    assert world.pod(name) is None
    assert world.billed() == []
    claim = world.claims.get(claim_id_for(CLUSTER, created["metadata"]["uid"]))
    assert claim is not None
    assert claim.phase is Phase.TERMINATED
    world.run(13)
    assert world.raw.call("GET", "/api/v1/nodes/nebula-runpod")[0] == 404


def test_a_gated_pod_is_deleted_before_anything_is_released(world: RealWorld) -> None:
    name = unique("brief")
    created = world.deploy(name)
    world.announce(DetailType.POD_GATED, created)
    world.delete_pod(name)
    world.pump()
    world.run(3)
    assert world.pod(name) is None
    assert world.billed() == []


def test_a_pod_that_lost_its_label_is_still_ended(world: RealWorld) -> None:
    name = unique("unlabelled")
    created = world.deploy(name)
    world.announce(DetailType.POD_GATED, created)
    world.pump()
    world.bind()
    world.run(2)
    assert running(world.pod(name))
    gone = {"metadata": {"labels": {"nebula.inftyai.com/enabled": None}}}
    assert world.raw.patch(f"{PODS}/{name}", gone)[0] == 200
    world.run(2)
    world.delete_pod(name)
    world.run(3)
    assert world.pod(name) is None
    assert world.billed() == []
