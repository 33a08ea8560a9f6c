"""The field table: every field of a Pod is met on purpose, and never in silence."""

from __future__ import annotations

from typing import Any

import pytest
from nebula.domain.workload import RestartPolicy
from nebula.kubernetes.field_walk import findings
from nebula.kubernetes.workload import InvalidPodError, Translation, refusals, translate
from nebula.kubernetes.workload_fields import FIELDS

from tests.support.pods import Object, References, container, node_pool, pod

EMPTY_DIR: Object = {"name": "cache", "emptyDir": {}}


def run(main: Object | None = None, **spec: Any) -> Translation:
    return translate(pod(main or container(), **spec), node_pool(), References().api)


def refused(main: Object | None = None, **spec: Any) -> str:
    found = pod(main or container(), **spec)
    with pytest.raises(InvalidPodError) as raised:
        translate(found, node_pool(), References().api)
    assert raised.value.reason == "UnsupportedField"
    assert refusals(found)
    return str(raised.value)


def test_paths_are_unique_and_every_row_says_why() -> None:
    paths = [field.path for field in FIELDS]
    assert len(paths) == len(set(paths))
    assert all(field.note for field in FIELDS)


def test_no_row_hides_another() -> None:
    paths = {field.path for field in FIELDS}
    assert not [path for path in paths if any(other.startswith((f"{path}.", f"{path}[]")) for other in paths)]


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.path)
def test_each_row_is_applied_to_a_value_that_asks_for_something(field: Any) -> None:
    value: Any = "something"
    for part in reversed(field.path.split(".")):
        bare = part.removesuffix("[]")
        value = {bare: [value] if part.endswith("[]") else value}
    (found,) = findings(value)
    assert found.treatment is field.treatment
    assert found.note == field.note
    assert found.quiet is field.quiet


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({"hostNetwork": True}, "spec.hostNetwork"),
        ({"hostPID": True}, "spec.hostPID"),
        ({"hostIPC": True}, "spec.hostIPC"),
        ({"hostAliases": [{"ip": "10.0.0.1"}]}, "spec.hostAliases"),
        ({"os": {"name": "windows"}}, "spec.os.name"),
        ({"runtimeClassName": "gvisor"}, "spec.runtimeClassName"),
        ({"dnsConfig": {"nameservers": ["10.0.0.2"]}}, "spec.dnsConfig.nameservers"),
        ({"resourceClaims": [{"name": "gpu"}]}, "spec.resourceClaims"),
        ({"initContainers": [container(name="setup")]}, "spec.initContainers[setup]"),
        ({"initContainers": [container(name="mesh", restartPolicy="Always")]}, "spec.initContainers[mesh]"),
        ({"securityContext": {"sysctls": [{"name": "net.core.somaxconn"}]}}, "spec.securityContext.sysctls"),
        ({"somethingNew": True}, "spec.somethingNew"),
        ({"securityContext": {"somethingNew": 1}}, "spec.securityContext.somethingNew"),
    ],
)
def test_g3_y4_y6_what_cannot_be_honoured_is_refused_by_name(spec: Object, name: str) -> None:
    assert f"{name} (" in refused(**spec)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"ports": [{"containerPort": 53, "protocol": "UDP"}]}, "ports[0].protocol"),
        ({"ports": [{"name": "dns", "containerPort": 53, "protocol": "SCTP"}]}, "ports[dns].protocol"),
        ({"ports": [{"containerPort": 80, "hostPort": 80}]}, "ports[0].hostPort"),
        ({"ports": [{"containerPort": 80, "hostIP": "10.0.0.1"}]}, "ports[0].hostIP"),
        ({"securityContext": {"privileged": True}}, "securityContext.privileged"),
        ({"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}, "securityContext.capabilities.add"),
        ({"lifecycle": {"postStart": {"exec": {}}}}, "lifecycle.postStart"),
        ({"imagePullPolicy": "Never"}, "imagePullPolicy"),
        ({"stdin": True}, "stdin"),
        ({"tty": True}, "tty"),
        ({"volumeDevices": [{"name": "disk"}]}, "volumeDevices"),
        ({"restartPolicy": "OnFailure"}, "restartPolicy"),
        ({"resources": {"claims": [{"name": "gpu"}]}}, "resources.claims"),
        ({"somethingNew": {"deep": 1}}, "somethingNew"),
    ],
)
def test_g7_y4_what_a_container_cannot_have_is_refused_by_name(fields: Object, name: str) -> None:
    assert f"spec.containers[main].{name} (" in refused(container(**fields))


@pytest.mark.parametrize(
    "volume",
    [
        EMPTY_DIR,
        {"name": "shm", "emptyDir": {"medium": "Memory"}},
        {"name": "host", "hostPath": {"path": "/"}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "config", "configMap": {"name": "m"}},
        {"name": "secret", "secret": {"secretName": "s"}},
        {"name": "projected", "projected": {"sources": [{"configMap": {"name": "m"}}]}},
    ],
)
def test_g11_y4_every_volume_of_the_user_s_is_refused_by_its_name(volume: Object) -> None:
    text = refused(container(volumeMounts=[{"name": volume["name"], "mountPath": "/data"}]), volumes=[volume])
    assert f"spec.volumes[{volume['name']}] (" in text
    assert f"spec.containers[main].volumeMounts[{volume['name']}] (" in text


def test_several_refusals_are_named_together() -> None:
    text = refused(container(tty=True), hostNetwork=True)
    assert "spec.hostNetwork" in text
    assert "tty" in text


@pytest.mark.parametrize(
    "fields",
    [
        {"livenessProbe": {"exec": {"command": ["true"]}}},
        {"readinessProbe": {"httpGet": {"port": 80}}},
        {"startupProbe": {"httpGet": {"port": 80}}},
        {"lifecycle": {"preStop": {"exec": {}}}},
        {"securityContext": {"runAsUser": 1000}},
        {"securityContext": {"capabilities": {"drop": ["ALL"]}}},
        {"securityContext": {"readOnlyRootFilesystem": True}},
        {"terminationMessagePolicy": "FallbackToLogsOnError"},
    ],
)
def test_g6_what_is_harmless_to_ignore_is_listed(fields: Object) -> None:
    (word,) = run(container(**fields)).ignored
    assert word.startswith("spec.containers[main].")


def test_a_pod_of_a_restricted_namespace_is_accepted_with_its_words() -> None:
    context = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True}
    translation = run(
        container(securityContext=context), securityContext={"seccompProfile": {"type": "RuntimeDefault"}}
    )
    assert len(translation.ignored) == 4


def test_what_the_api_server_fills_in_by_itself_is_neither_refused_nor_mentioned() -> None:
    main = container(
        imagePullPolicy="IfNotPresent",
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
        resources={},
        ports=[{"containerPort": 80, "protocol": "TCP", "hostPort": 0}],
        stdin=False,
        securityContext={},
    )
    defaults = {
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "serviceAccount": "default",
        "serviceAccountName": "default",
        "terminationGracePeriodSeconds": 30,
        "hostNetwork": False,
        "volumes": None,
    }
    assert run(main, **defaults).ignored == ()


def test_a_stateful_set_s_host_name_is_ignored_with_a_word() -> None:
    assert [word.split(" ")[0] for word in run(hostname="web-0", subdomain="web").ignored] == [
        "spec.hostname",
        "spec.subdomain",
    ]


@pytest.mark.parametrize("policy", list(RestartPolicy))
def test_the_restart_policy_and_times_are_carried(policy: RestartPolicy) -> None:
    workload = run(restartPolicy=str(policy), activeDeadlineSeconds=60, terminationGracePeriodSeconds=0).workload
    assert (workload.restart_policy, workload.active_deadline_seconds) == (policy, 60)
    assert workload.termination_grace_period_seconds == 0
    assert run().workload.termination_grace_period_seconds == 30


@pytest.mark.parametrize(
    "image",
    [
        "nginx",
        "nginx:1.27",
        "localhost:5000/a/b:c",
        "ghcr.io/a/b@sha256:" + "0" * 64,
        "quay.io/a/b:1@sha256:" + "0" * 64,
    ],
)
def test_image_references_are_sent_as_written(image: str) -> None:
    assert run(container(image=image)).workload.image == image


@pytest.mark.parametrize(
    "fields", [{"image": ""}, {"image": None}, {"image": "a b"}, {"command": [1]}, {"args": "text"}]
)
def test_malformed_fields_are_refused(fields: Object) -> None:
    with pytest.raises(InvalidPodError, match="container main"):
        run(container(**fields))


@pytest.mark.parametrize(
    "spec",
    [
        {"restartPolicy": "Sometimes"},
        {"activeDeadlineSeconds": "60"},
        {"activeDeadlineSeconds": -1},
        {"activeDeadlineSeconds": True},
    ],
)
def test_malformed_spec_fields_are_refused(spec: Object) -> None:
    with pytest.raises(InvalidPodError, match="spec"):
        run(**spec)


#: Fields of PodSpec and Container in Kubernetes 1.37, from the published OpenAPI.
POD_SPEC_1_37 = """
activeDeadlineSeconds affinity automountServiceAccountToken containers dnsConfig dnsPolicy enableServiceLinks
ephemeralContainers evictionResponders hostAliases hostIPC hostNetwork hostPID hostUsers hostname hostnameOverride
imagePullSecrets initContainers nodeName nodeSelector os overhead preemptionPolicy priority priorityClassName
readinessGates resourceClaims resources restartPolicy runtimeClassName schedulerName schedulingGates schedulingGroup
securityContext serviceAccount serviceAccountName setHostnameAsFQDN shareProcessNamespace subdomain
terminationGracePeriodSeconds tolerations topologySpreadConstraints volumes
"""
CONTAINER_1_37 = """
args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports readinessProbe resizePolicy resources
restartPolicy restartPolicyRules securityContext startupProbe stdin stdinOnce terminationMessagePath
terminationMessagePolicy tty volumeDevices volumeMounts workingDir
"""


@pytest.mark.parametrize(("names", "prefix"), [(POD_SPEC_1_37, ""), (CONTAINER_1_37, "containers[].")])
def test_no_field_of_a_known_release_is_unknown_to_the_table(names: str, prefix: str) -> None:
    known = [field.path for field in FIELDS]
    assert not [name for name in names.split() if not any(path.startswith(f"{prefix}{name}") for path in known)]
