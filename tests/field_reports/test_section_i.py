"""Field reports, section I: the Kubernetes API and admission, seen from functions outside of the cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import pytest
import yaml
from botocore.credentials import Credentials
from nebula.clock import ManualClock
from nebula.domain.claim import claim_id_for
from nebula.kubernetes.api import ForbiddenError
from nebula.kubernetes.client import KubernetesClient
from nebula.kubernetes.eks import EksToken
from nebula.kubernetes.transport import Transport
from nebula.workflows.explain import explain_pod

from cluster.forwarder.books import PodBook
from cluster.forwarder.meters import Meters
from cluster.forwarder.service import PODS
from cluster.forwarder.watcher import Watcher
from local.in_process import session_over
from local.kubernetes.adapter import SERVER, session
from local.kubernetes.pod_defaults import Admission
from local.kubernetes.resources import NAMESPACES
from local.kubernetes.server import Emulator, Response
from tests.support.handlers import ROOT
from tests.support.runpod_installation import condition
from tests.support.world import CLUSTER, START, World, pod_object, running

Object = dict[str, Any]
GATE = "nebula.inftyai.com/provider-selection"
LABEL = {"nebula.inftyai.com/enabled": "true"}
POLICIES = [
    document
    for path in sorted((ROOT / "cluster/gating").glob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text())
    if str(document["kind"]).endswith("AdmissionPolicy")
]


def _expressions(part: Any) -> Iterator[str]:
    """Every CEL expression within a policy."""
    if isinstance(part, Mapping):
        for key, value in part.items():
            if key in ("expression", "messageExpression"):
                yield str(value)
            else:
                yield from _expressions(value)
    elif isinstance(part, list):
        for item in part:
            yield from _expressions(item)


def _generated(namespace: str = "default") -> tuple[World, Object]:
    """A world whose API server gates; a Pod that came with ``generateName`` only, as a ReplicaSet sends it."""
    world = World()
    world.emulator.admission = Admission(gate=GATE)
    if namespace != "default":
        world.emulator.create(NAMESPACES, "", {"metadata": {"name": namespace}})
    sent = pod_object()
    sent["metadata"] = {"generateName": "train-7d4b9c-", "labels": sent["metadata"]["labels"]}
    del sent["spec"]["schedulingGates"]
    path = f"/api/v1/namespaces/{namespace}/pods"
    answer = world.emulator.handle("POST", path, {}, {"Content-Type": "application/json"}, json.dumps(sent).encode())
    assert answer.status == 201
    assert isinstance(answer.body, bytes)
    created: Object = json.loads(answer.body)
    return world, created


def _forwarded(world: World) -> None:
    """Put on the bus what the forwarder tells of the cluster."""

    def announce(events: Any) -> None:
        world.publisher.publish(list(events))

    transport = Transport(SERVER, None, session(world.emulator), sleep=lambda _: None)
    selector = "nebula.inftyai.com/enabled=true"
    Watcher("pods", transport, PODS, selector, PodBook(CLUSTER), announce, Meters()).list_all()


def test_i1_a_pod_with_generate_name_only_is_gated_by_its_labels_and_claimed_by_the_uid_that_the_watch_tells() -> None:
    world, created = _generated()
    assert created["spec"]["schedulingGates"] == [{"name": GATE}]
    assert list(world.claims.live(CLUSTER)) == []
    _forwarded(world)
    world.pump()
    (claim,) = world.claims.live(CLUSTER)
    assert claim.claim_id == claim_id_for(CLUSTER, created["metadata"]["uid"])
    assert claim.pod_name == created["metadata"]["name"]
    assert claim.pod_name.startswith("train-7d4b9c-")
    world.tick()
    assert running(world.pod(claim.pod_name))


@pytest.mark.parametrize("policy", POLICIES, ids=lambda one: str(one["metadata"]["name"]))
def test_i1_the_gate_policies_go_by_labels_and_never_read_a_name(policy: Object) -> None:
    assert policy["spec"]["matchConstraints"]["objectSelector"] == {"matchLabels": LABEL}
    expressions = list(_expressions(policy))
    assert expressions
    assert [text for text in expressions if ".metadata" in text] == []
    rules = policy["spec"]["matchConstraints"]["resourceRules"]
    assert [rule.get("resourceNames") for rule in rules] == [None] * len(rules)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda one: str(one["metadata"]["name"]))
def test_i2_the_gate_policies_take_the_namespace_from_the_request_and_not_from_the_object(policy: Object) -> None:
    (term,) = policy["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"]
    assert (term["key"], term["operator"]) == ("kubernetes.io/metadata.name", "NotIn")
    assert [text for text in _expressions(policy) if "namespace" in text] == []


def test_i2_a_pod_without_a_namespace_of_its_own_is_announced_under_that_of_its_request() -> None:
    world, created = _generated("team")
    _forwarded(world)
    (told,) = world.publisher.take()
    assert (told["detail"]["namespace"], told["detail"]["uid"]) == ("team", created["metadata"]["uid"])
    world.queue.append(told)
    world.pump()
    (claim,) = world.claims.live(CLUSTER)
    assert claim.namespace == "team"


class _Authenticator:
    """An API server that takes one token at a time and says 401 to every other."""

    def __init__(self) -> None:
        self.emulator = Emulator()
        self.accepted = ""
        self.presented: list[str] = []

    def handle(
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> Response:
        self.presented.append(headers["Authorization"].removeprefix("Bearer "))
        self.accepted = self.accepted or self.presented[-1]
        if self.presented[-1] != self.accepted:
            status = {"kind": "Status", "status": "Failure", "reason": "Unauthorized", "code": 401}
            return Response(401, {"Content-Type": "application/json"}, json.dumps(status).encode())
        return self.emulator.handle(method, path, query, {}, body)


class _Eks:
    """A warm client of an EKS cluster, whose role's credentials change when told."""

    def __init__(self) -> None:
        self.clock = ManualClock(START)
        self.server = _Authenticator()
        self.role = "AKIAFIRST"
        tokens = EksToken("prod", "eu-west-1", self.clock, lambda: Credentials(self.role, "s" * 40, "t" * 40))
        transport = Transport(SERVER, tokens, session_over(self.server, SERVER), sleep=lambda _: None)
        self.client = KubernetesClient("prod", transport)


def test_i3_a_warm_client_mints_a_new_token_before_the_fifteen_minutes_of_the_old_are_over() -> None:
    eks = _Eks()
    eks.client.cluster_uid()
    eks.clock.advance(timedelta(minutes=14))
    eks.role, eks.server.accepted = "AKIASECOND", ""
    assert eks.client.get_pod("default", "absent") is None
    assert len(set(eks.server.presented)) == 2


def test_i3_a_token_that_outlived_its_credentials_is_answered_401_once_and_minted_again_from_new_ones() -> None:
    eks = _Eks()
    assert eks.client.get_pod("default", "absent") is None
    old = eks.server.presented[-1]
    eks.clock.advance(timedelta(minutes=2))
    eks.role = "AKIASECOND"
    server = eks.server
    server.accepted = "none of the old ones"
    handle, accept_next = server.handle, iter([False, True])

    def expired_then_new(*call: Any) -> Response:
        server.accepted = "" if next(accept_next) else "none of the old ones"
        return handle(*call)

    server.handle = expired_then_new  # type: ignore[method-assign,assignment]
    assert eks.client.get_pod("default", "absent") is None
    assert server.presented[-2] == old
    assert server.presented[-1] != old


def test_i3_a_second_401_is_an_answer_and_no_reason_to_ask_for_ever() -> None:
    eks = _Eks()
    eks.server.accepted = "nobody's"
    with pytest.raises(ForbiddenError):
        eks.client.get_pod("default", "absent")
    assert len(eks.server.presented) == 2


@pytest.mark.parametrize("label", [{}, {"nebula.inftyai.com/accelerator-type": ""}], ids=["absent", "empty"])
def test_i4_a_gpu_count_without_a_type_is_refused_with_the_reason_and_never_cpu_only(label: Object) -> None:
    world = World()
    pod = pod_object()
    del pod["metadata"]["labels"]["nebula.inftyai.com/accelerator-type"]
    pod["metadata"]["labels"] |= label
    answer = explain_pod(world.services("placement"), pod, None)
    assert answer["refused"]["reason"] == "AcceleratorTypeMissing"
    path = "/api/v1/namespaces/default/pods"
    world.emulator.handle("POST", path, {}, {"Content-Type": "application/json"}, json.dumps(pod).encode())
    world.run(2)
    shown = condition(world.pod())
    assert shown["status"] == "False"
    assert "AcceleratorTypeMissing: nvidia.com/gpu=1 without label" in shown["message"]
    assert world.billed() == []
    assert world.claim().candidate is None
