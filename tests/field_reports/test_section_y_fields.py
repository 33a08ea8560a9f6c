"""Field reports, section Y: what a Pod asks for and may use (Y1 to Y6)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from nebula.domain.claim import Phase
from nebula.kubernetes.workload_fields import FIELDS, Treatment
from nebula.workflows.explain import explain_pod

from local.kubernetes.pod_defaults import Admission
from tests.support.runpod_installation import RunPodInstallation, condition, events, with_container
from tests.support.world import World, pod_object, running

Object = dict[str, Any]
(MAIN,) = pod_object()["spec"]["containers"]
GPU = "nvidia.com/gpu"
NO_GPU = {**MAIN, "resources": {}}


def _asking(**resources: Object) -> Object:
    """Changes for a Pod whose one container has these resources."""
    return {"containers": [{**MAIN, "resources": resources}]}


def _explained(**spec: Any) -> Object:
    """What ``explain`` answers on a Deployment whose template has this Pod."""
    pod = pod_object(**spec)
    template = {"metadata": pod["metadata"], "spec": pod["spec"]}
    deployment = {"kind": "Deployment", "metadata": {"name": "train"}, "spec": {"template": template}}
    return explain_pod(World().services("placement"), deployment, None)


def _applied(world: World, **spec: Any) -> int:
    """What the API server answers when the Pod is applied."""
    path, body = "/api/v1/namespaces/default/pods", json.dumps(pod_object(**spec)).encode()
    return world.emulator.handle("POST", path, {}, {"Content-Type": "application/json"}, body).status


def _refused(world: World, **spec: Any) -> str:
    world.create_pod(**spec)
    world.pump()
    world.run(1)
    assert world.billed() == []
    assert world.claim().candidate is None
    return str(condition(world.pod())["message"])


@pytest.mark.parametrize(
    ("resources", "reason"),
    [
        ({"requests": {GPU: "1"}}, "AcceleratorLimitMissing"),
        ({"requests": {GPU: "1"}, "limits": {GPU: "2"}}, "AcceleratorCountsDiffer"),
    ],
    ids=["in requests only", "requests unlike limits"],
)
def test_y1_what_an_api_server_refuses_of_a_gpu_a_dry_run_refuses_too(resources: Object, reason: str) -> None:
    assert _applied(World(), **_asking(**resources)) == 422
    answer = _explained(**_asking(**resources))
    assert answer["refused"]["reason"] == reason


@pytest.mark.parametrize(
    ("resources", "words"),
    [
        ({"limits": {GPU: "0"}}, f"AcceleratorCountZero: label nebula.inftyai.com/accelerator-type with {GPU}=0"),
        ({"limits": {"nvidia.com/mig-1g.10gb": "1"}}, "UnsupportedResource: container main: resource nvidia.com/mig-"),
        ({"limits": {"amd.com/gpu": "1"}}, "UnsupportedResource: container main: resource amd.com/gpu"),
        ({"limits": {GPU: "1", "amd.com/gpu": "1"}}, "UnsupportedResource: container main: resource amd.com/gpu"),
    ],
    ids=["0", "MIG", "AMD", "AMD beside NVIDIA"],
)
def test_y1_a_count_of_0_and_other_devices_are_refused_by_name_in_placement_and_dry_run(
    resources: Object, words: str
) -> None:
    assert words in _refused(World(), **_asking(**resources))
    assert _explained(**_asking(**resources))["refused"]["reason"] == words.partition(":")[0]


def test_y1_a_count_of_0_without_a_type_is_cpu_only() -> None:
    world = World()
    world.create_pod(labels={"nebula.inftyai.com/accelerator-type": ""}, **_asking(limits={GPU: "0", "cpu": "2"}))
    world.pump()
    assert world.claim().shape.accelerator is None
    assert world.claim().phase is Phase.RELEASED


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"containers": [{**NO_GPU, "name": "proxy"}, MAIN]}, "one container per Pod, found: proxy, main"),
        ({"containers": [MAIN, {**NO_GPU, "name": "proxy"}]}, "one container per Pod, found: main, proxy"),
        ({"containers": [NO_GPU], "initContainers": [{**MAIN, "name": "warm"}]}, "spec.initContainers[warm]"),
        ({"containers": [MAIN], "initContainers": [{**MAIN, "name": "warm"}]}, "spec.initContainers[warm]"),
    ],
    ids=["on the second", "on the first", "on an init container", "on both"],
)
def test_y2_a_gpu_on_another_container_than_the_one_that_runs_is_refused(spec: Object, named: str) -> None:
    assert named in _refused(World(), **spec)
    assert named in _explained(**spec)["refused"]["message"]


@pytest.mark.parametrize(
    ("asked", "sent"),
    [("10Gi", 11), ("1", 1), ("500M", 1), ("20G", 20), ("20000000001", 21), (None, 20)],
)
def test_y3_ephemeral_storage_is_the_container_s_disk_rounded_up_and_always_sent(asked: str | None, sent: int) -> None:
    world = RunPodInstallation()
    requests = {GPU: "1"} | ({"ephemeral-storage": asked} if asked else {})
    world.create_pod(**_asking(limits={GPU: "1"}, requests=requests))
    world.pump()
    assert world.created()["disk"] == sent


def _mounted(**volume: Any) -> Object:
    """A Pod that mounts one volume."""
    mount = {"name": "data", "mountPath": "/data"}
    return {"volumes": [{"name": "data", **volume}], "containers": [{**MAIN, "volumeMounts": [mount]}]}


REFUSED = {
    "privileged": (with_container(securityContext={"privileged": True}), "securityContext.privileged"),
    "capabilities added": (
        with_container(securityContext={"capabilities": {"add": ["SYS_ADMIN"]}}),
        "securityContext.capabilities.add",
    ),
    "SELinux": (with_container(securityContext={"seLinuxOptions": {"level": "s0"}}), "securityContext.seLinuxOptions"),
    "sysctls": ({"securityContext": {"sysctls": [{"name": "a", "value": "1"}]}}, "spec.securityContext.sysctls"),
    "hostNetwork": ({"hostNetwork": True}, "spec.hostNetwork"),
    "hostPID": ({"hostPID": True}, "spec.hostPID"),
    "hostIPC": ({"hostIPC": True}, "spec.hostIPC"),
    "hostPort": (with_container(ports=[{"containerPort": 80, "hostPort": 80}]), "ports[0].hostPort"),
    "hostPath": (_mounted(hostPath={"path": "/"}), "spec.volumes[data]"),
    "a PersistentVolumeClaim": (_mounted(persistentVolumeClaim={"claimName": "d"}), "spec.volumes[data]"),
    "a ConfigMap volume": (_mounted(configMap={"name": "c"}), "spec.volumes[data]"),
    "a Secret volume": (_mounted(secret={"secretName": "s"}), "spec.volumes[data]"),
    "emptyDir": (_mounted(emptyDir={}), "spec.volumes[data]"),
    "emptyDir in memory": (_mounted(emptyDir={"medium": "Memory", "sizeLimit": "8Gi"}), "spec.volumes[data]"),
    "an ephemeral volume": (_mounted(ephemeral={"volumeClaimTemplate": {}}), "spec.volumes[data]"),
    "a CSI volume": (_mounted(csi={"driver": "d"}), "spec.volumes[data]"),
    "a field of a newer release": (with_container(securityContext={"brandNew": 1}), "securityContext.brandNew"),
}
IGNORED = {
    "runAsUser of the container": (with_container(securityContext={"runAsUser": 1000}), "securityContext.runAsUser"),
    "runAsUser of the Pod": ({"securityContext": {"runAsUser": 1000}}, "spec.securityContext.runAsUser"),
    "runAsGroup": (with_container(securityContext={"runAsGroup": 1}), "securityContext.runAsGroup"),
    "runAsNonRoot": (with_container(securityContext={"runAsNonRoot": True}), "securityContext.runAsNonRoot"),
    "fsGroup": ({"securityContext": {"fsGroup": 1}}, "spec.securityContext.fsGroup"),
    "capabilities dropped": (
        with_container(securityContext={"capabilities": {"drop": ["ALL"]}}),
        "securityContext.capabilities.drop",
    ),
    "a read-only root": (
        with_container(securityContext={"readOnlyRootFilesystem": True}),
        "securityContext.readOnlyRootFilesystem",
    ),
    "no escalation": (
        with_container(securityContext={"allowPrivilegeEscalation": False}),
        "securityContext.allowPrivilegeEscalation",
    ),
    "seccomp": ({"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}, "seccompProfile"),
    "hostUsers": ({"hostUsers": False}, "spec.hostUsers"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_y4_what_cannot_be_kept_is_refused_by_its_name(name: str) -> None:
    spec, field = REFUSED[name]
    shown = _refused(World(), **spec)
    assert "cannot be honoured" in shown
    assert field in shown


@pytest.mark.parametrize("name", IGNORED)
def test_y4_what_is_harmless_to_leave_out_is_told_and_the_pod_runs(name: str) -> None:
    spec, field = IGNORED[name]
    world = World()
    world.create_pod(**spec)
    world.pump()
    world.tick()
    assert running(world.pod())
    (told,) = events(world, "Translated")
    assert field in told["message"]


def test_y4_the_service_account_token_that_admission_mounts_is_left_out_without_a_word() -> None:
    world = World()
    world.emulator.admission = Admission(service_account=True)
    pod = world.create_pod()
    assert pod["spec"]["volumes"][0]["projected"]
    world.pump()
    world.tick()
    assert running(world.pod())
    assert events(world, "Translated") == []


def test_y4_every_security_host_and_volume_field_of_the_table_has_a_policy_and_says_why() -> None:
    heads = ("securityContext", "containers[].securityContext", "host", "volumes", "containers[].volume")
    fields = [field for field in FIELDS if field.path.startswith(heads)]
    assert len(fields) >= 30
    assert {field.treatment for field in fields} == {Treatment.IGNORED, Treatment.REFUSED}
    assert all(field.note and not field.quiet for field in fields)


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_y5_a_policy_that_needs_an_exit_code_is_not_placed_where_none_is_told(policy: str) -> None:
    world = RunPodInstallation()
    world.create_pod(restartPolicy=policy)
    world.pump()
    world.run(2)
    assert "exit_code_unsupported" in condition(world.pod())["message"]
    assert world.calls("POST", "/v2/pods") == []


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
def test_y5_on_runpod_a_container_that_ended_fails_its_pod_with_an_unknown_exit_and_no_restart(policy: str) -> None:
    world = RunPodInstallation(allowUnknownExit=True)
    world.create_pod(restartPolicy=policy)
    world.pump()
    world.run(1)
    assert running(world.pod())
    world.account.pods[world.alive()[0]].force("EXITED", world.clock.now())
    world.run(2)
    status = (world.pod() or {})["status"]
    assert status["phase"] == "Failed"
    (container,) = status["containerStatuses"]
    assert (container["restartCount"], container["state"]["terminated"]["exitCode"]) == (0, 137)
    assert "exit code unknown" in status["message"]
    assert world.alive() == []


def test_y5_a_container_that_runpod_restarts_by_itself_stays_one_running_pod_on_one_instance() -> None:
    world = RunPodInstallation()
    world.create_pod(restartPolicy="Always")
    world.pump()
    world.run(1)
    (instance,) = world.alive()
    for _ in range(3):
        world.account.pods[instance].act("restart", world.clock.now())
        world.run(1)
    assert running(world.pod())
    assert world.alive() == [instance]


@pytest.mark.parametrize(
    ("policy", "code", "phase"),
    [
        ("Always", 0, "Failed"),
        ("Always", 3, "Failed"),
        ("OnFailure", 0, "Succeeded"),
        ("OnFailure", 3, "Failed"),
        ("Never", 0, "Succeeded"),
        ("Never", 3, "Failed"),
    ],
)
def test_y5_where_the_exit_code_is_told_each_policy_has_its_final_phase(policy: str, code: int, phase: str) -> None:
    world = World()
    world.create_pod(restartPolicy=policy)
    world.pump()
    world.tick()
    world.simulated.console.exit(world.billed()[0], code)
    world.run(2)
    status = (world.pod() or {})["status"]
    (container,) = status["containerStatuses"]
    assert (status["phase"], container["restartCount"]) == (phase, 0)
    assert container["state"]["terminated"]["exitCode"] == code
    assert world.billed() == []


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"initContainers": [{"name": "mesh", "image": "m", "restartPolicy": "Always"}]}, "spec.initContainers[mesh]"),
        ({"containers": [MAIN, {"name": "istio-proxy", "image": "m"}]}, "found: main, istio-proxy"),
    ],
    ids=["native", "injected at admission"],
)
def test_y6_a_sidecar_is_refused_by_its_name_so_that_its_injection_can_be_turned_off(spec: Object, named: str) -> None:
    assert named in _refused(World(), **spec)
