"""Odd Pods that an API server takes, through the whole installation: told why or running, and nothing left."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from nebula.domain.claim import Phase

from tests.support.handlers import about_pod, batch, failed, handler
from tests.support.lending import pull_secret
from tests.support.runpod_installation import RunPodInstallation, condition, put_login, put_secret
from tests.support.world import CLUSTER, World, pod_object, running

Object = dict[str, Any]
GPU = "nvidia.com/gpu"
PODS_PER_SEED = 12
TERM = {"matchExpressions": [{"key": "x", "operator": "Gt", "values": ["abc"]}]}
NODE = "requiredDuringSchedulingIgnoredDuringExecution"
SPEC: dict[str, list[Any]] = {
    "activeDeadlineSeconds": [3600, 2**31 - 1],
    "terminationGracePeriodSeconds": [0, 3600],
    "restartPolicy": ["Never", "OnFailure", "Always"],
    "nodeSelector": [{}, {"a": "b"}, {"kubernetes.io/os": "linux"}, {"type": "virtual-kubelet"}],
    "affinity": [{"nodeAffinity": {}}, {"nodeAffinity": {NODE: {"nodeSelectorTerms": [TERM]}}}, {"podAffinity": {}}],
    "tolerations": [[], [{"operator": "Exists"}]],
    "imagePullSecrets": [[{}], [{"name": ""}], [{"name": ".."}], [{"name": "a/b"}], [{"name": "broken"}]],
    "topologySpreadConstraints": [[{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]],
    "dnsPolicy": ["None", "Default"],
    "readinessGates": [[{"conditionType": "example.com/warm"}]],
    "priority": [-(2**31), 2**31 - 1],
    "volumes": [[], [{"name": "v"}], [{"name": "v", "emptyDir": {}}]],
    "securityContext": [{}, {"fsGroup": 1}, {"brandNew": 1}],
    "overhead": [{}, {"cpu": "1"}],
}
CONTAINER: dict[str, list[Any]] = {
    "image": ["a b", "registry:5000/x@sha256:" + "0" * 64, "UPPER/Case", "x" * 3000, "nginx:", "ünï"],
    "command": [[], ["sh", "-c", "$(X)"], [""], ["a" * 50_000]],
    "args": [[], ["$$", "$(", "$()"], ["\u0001"]],
    "env": [
        [{"name": "A", "value": "$(A)"}],
        [{"name": "A" * 4000, "value": ""}],
        [{"name": "B", "valueFrom": {}}],
        [{"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['']"}}}],
        [{"name": "C", "valueFrom": {"secretKeyRef": {}}}],
        [{"name": "C", "valueFrom": {"secretKeyRef": {"name": "login", "key": ".dockerconfigjson"}}}],
        [{"name": "D", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}}}],
        [{"name": "E", "value": "x" * 200_000}],
        [{"name": "F", "value": "{{ RUNPOD_SECRET_x }}"}],
    ],
    "envFrom": [
        [{}],
        [{"secretRef": {}}],
        [{"configMapRef": {"name": ".."}}],
        [{"prefix": "x" * 300, "secretRef": {"name": "login"}}],
    ],
    "ports": [[{"containerPort": 65_535}], [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]],
    "workingDir": ["/x", "relative"],
    "resources": [
        {},
        {"limits": {GPU: "0"}},
        {"limits": {GPU: "1000000"}},
        {"limits": {GPU: "1", "cpu": "1E", "memory": "8Ei"}},
        {"limits": {GPU: "1", "memory": "1n", "ephemeral-storage": "9E"}},
        {"requests": {"cpu": "0.0000000001"}},
    ],
    "livenessProbe": [{}, {"exec": {}}],
    "lifecycle": [{}, {"preStop": {"exec": {}}}],
}
LABELS = {"accelerator-type": ["H100", "", "x" * 63, "A100-80GB"], "nodepool": ["", "none"]}
INGRESS = ["none", "8080", "80,80", "0", "99999", "abc", "", ","]


def _pod(chance: random.Random) -> Object:
    """A Pod with a few odd fields."""
    pod = pod_object()
    for fields, target, most in ((SPEC, pod["spec"], 2), (CONTAINER, pod["spec"]["containers"][0], 3)):
        for key in chance.sample(sorted(fields), chance.randint(0, most)):
            target[key] = chance.choice(fields[key])
    for key, values in LABELS.items():
        if chance.random() < 0.2:
            pod["metadata"]["labels"][f"nebula.inftyai.com/{key}"] = chance.choice(values)
    if chance.random() < 0.2:
        pod["metadata"]["annotations"]["nebula.inftyai.com/ingress-ports"] = chance.choice(INGRESS)
    return pod


def _applied(world: World, pod: Object) -> Object | None:
    """The Pod as the API server stored it; None when it refused it."""
    path, headers = "/api/v1/namespaces/default/pods", {"Content-Type": "application/json"}
    answer = world.emulator.handle("POST", path, {}, headers, json.dumps(pod).encode())
    assert isinstance(answer.body, bytes)
    made: Object = json.loads(answer.body)
    return made if answer.status == 201 else None


def _quiet(world: World) -> bool:
    """Whether no event and no claim failed for a reason that nobody foresaw."""
    return not any(world.telemetry.total(metric) for metric in ("EventsFailed", "EventsRefused", "ClaimsFailed"))


@pytest.mark.parametrize("provider", [World, RunPodInstallation])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_an_odd_pod_runs_or_is_told_why_and_leaves_nothing(seed: int, provider: type[World]) -> None:
    chance = random.Random(seed)
    taken = 0
    while taken < PODS_PER_SEED:
        world = provider()
        put_login(world)
        put_secret(world, "broken", pull_secret({"auths": 5}))
        pod = _pod(chance)
        made = _applied(world, pod)
        if made is None:
            continue
        taken += 1
        assert failed(handler("placement", world)(batch(about_pod("Pod Gated", made)))) == [], pod
        world.pump()
        world.run(2)
        assert _quiet(world), (pod, world.telemetry.lines)
        (claim,) = world.claims.live(CLUSTER)
        told = condition(world.pod())
        assert running(world.pod()) or claim.phase is not Phase.RELEASED or "readinessGates" in pod["spec"], pod
        assert claim.phase is Phase.RELEASED or (told["status"], bool(told["message"])) == ("False", True), pod
        world.delete_pod()
        world.pump()
        world.run(2)
        assert world.pod() is None, pod
        assert list(world.claims.live(CLUSTER)) == []
        assert world.committed() == 0
