"""Field reports, section G: what becomes of a Pod's fields on their way to RunPod."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from nebula.kubernetes.workload_fields import BY_PATH, Treatment
from nebula.providers.naming import instance_name

from local.kubernetes.resources import CONFIG_MAPS, NAMESPACES, PODS
from tests.support.handlers import about_pod
from tests.support.pods import events_of
from tests.support.runpod_guard import Guard
from tests.support.runpod_installation import RunPodInstallation, condition, put_secret, with_container
from tests.support.world import pod_object, running

Object = dict[str, Any]
(MAIN,) = pod_object()["spec"]["containers"]


def _sent(world: RunPodInstallation, **spec: Any) -> Object:
    """The body of the create that a Pod leads to."""
    world.create_pod(**spec)
    world.pump()
    return world.created()


def _refused(world: RunPodInstallation, **spec: Any) -> str:
    """Why a Pod stays at its gate; nothing was bought for it."""
    world.create_pod(**spec)
    world.pump()
    world.run(1)
    assert world.calls("POST", "/v2/pods") == []
    shown = condition(world.pod())
    assert shown["status"] == "False"
    return str(shown["message"])


def _env(world: RunPodInstallation, *entries: Object, **container: Any) -> Object:
    """The user's part of the environment as it was sent."""
    sent = _sent(world, **with_container(env=list(entries), **container))["env"]
    return {name: value for name, value in sent.items() if not name.startswith("NEBULA_")}


def _field(name: str, path: str) -> Object:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _resource(name: str, **reference: str) -> Object:
    return {"name": name, "valueFrom": {"resourceFieldRef": reference}}


def _with_references() -> RunPodInstallation:
    world = RunPodInstallation()
    put_secret(world, "keys", {"type": "Opaque", "data": {"TOKEN": base64.b64encode(b"s3cret").decode()}})
    config: Object = {"metadata": {"name": "settings"}, "data": {"MODEL": "llama", "TOKEN": "from the ConfigMap"}}
    world.emulator.create(CONFIG_MAPS, "default", config)
    return world


def test_g1_value_from_reaches_runpod_as_a_text_and_never_as_null() -> None:
    reference = {"secretKeyRef": {"name": "keys", "key": "TOKEN"}}
    env = _env(_with_references(), {"name": "A", "valueFrom": reference}, {"name": "B", "valueFrom": None})
    assert env == {"A": "s3cret", "B": ""}


def test_g1_a_value_from_that_cannot_be_resolved_is_refused_by_name() -> None:
    entry = {"name": "A", "valueFrom": {"fileKeyRef": {"path": "env", "key": "A"}}}
    assert "env A: valueFrom fileKeyRef" in _refused(RunPodInstallation(), **with_container(env=[entry]))


def test_g2_env_from_comes_in_its_order_with_prefixes_later_wins_and_env_overrides() -> None:
    sources = [
        {"configMapRef": {"name": "settings"}},
        {"secretRef": {"name": "keys"}},
        {"prefix": "CM_", "configMapRef": {"name": "settings"}},
        {"secretRef": {"name": "absent", "optional": True}},
    ]
    env = _env(_with_references(), {"name": "MODEL", "value": "qwen"}, envFrom=sources)
    assert env == {"MODEL": "qwen", "TOKEN": "s3cret", "CM_MODEL": "llama", "CM_TOKEN": "from the ConfigMap"}


def test_g2_a_source_that_is_missing_and_not_optional_is_waited_for_and_named() -> None:
    shown = _refused(RunPodInstallation(), **with_container(envFrom=[{"secretRef": {"name": "absent"}}]))
    assert "Secret absent does not exist in namespace default" in shown


@pytest.mark.parametrize("name", ["", "..", "."])
def test_g2_a_reference_that_is_no_name_is_waited_for_like_one_that_does_not_exist(name: str) -> None:
    entry = {"name": "A", "valueFrom": {"secretKeyRef": {"name": name, "key": "k"}}}
    shown = _refused(RunPodInstallation(), **with_container(env=[entry]))
    assert f"Secret {name or 'without a name'} does not exist" in shown


def test_g2_an_optional_reference_that_is_no_name_is_left_out() -> None:
    source = {"configMapRef": {"name": "..", "optional": True}}
    assert _env(RunPodInstallation(), {"name": "A", "value": "a"}, envFrom=[source]) == {"A": "a"}


def test_g3_a_pod_whose_init_container_has_references_is_refused_at_placement() -> None:
    init = {"name": "fetch", "image": "busybox:1", "envFrom": [{"secretRef": {"name": "keys"}}]}
    assert "spec.initContainers[fetch]" in _refused(_with_references(), initContainers=[init])


def test_g4_downward_metadata_is_sent_as_it_is() -> None:
    world = RunPodInstallation()
    paths = {"NAME": "metadata.name", "NAMESPACE": "metadata.namespace", "UID": "metadata.uid"}
    entries = [_field(name, path) for name, path in paths.items()]
    entries += [_field("APP", "metadata.labels['app']"), _field("NOTE", "metadata.annotations['note']")]
    pod = {**with_container(env=entries), "labels": {"app": "train"}, "annotations": {"note": "hello"}}
    env = _sent(world, **pod)["env"]
    uid = (world.pod() or {})["metadata"]["uid"]
    assert {key: env[key] for key in ("NAME", "NAMESPACE", "UID", "APP", "NOTE")} == {
        "NAME": "train",
        "NAMESPACE": "default",
        "UID": uid,
        "APP": "train",
        "NOTE": "hello",
    }


@pytest.mark.parametrize("path", ["status.podIP", "status.podIPs", "status.hostIP", "status.hostIPs"])
def test_g4_an_address_that_nobody_has_yet_is_refused_and_never_faked(path: str) -> None:
    assert f"fieldRef {path} is not known" in _refused(RunPodInstallation(), **with_container(env=[_field("IP", path)]))


def test_g5_resource_fields_are_answered_from_explicit_values_with_the_divisor() -> None:
    resources = {**MAIN["resources"], "requests": {**MAIN["resources"]["requests"], "cpu": "1500m", "memory": "3Gi"}}
    entries = [
        _resource("CPUS", resource="requests.cpu"),
        _resource("MILLI", resource="requests.cpu", divisor="1m"),
        _resource("MIB", resource="requests.memory", divisor="1Mi", containerName="main"),
    ]
    env = _env(RunPodInstallation(), *entries, resources=resources)
    assert env == {"CPUS": "2", "MILLI": "1500", "MIB": "3072"}


def test_g5_a_resource_field_that_names_an_init_container_is_refused_by_name() -> None:
    entry = _resource("MEMORY", resource="limits.memory", containerName="fetch")
    shown = _refused(RunPodInstallation(), **with_container(env=[entry]))
    assert "resourceFieldRef limits.memory of container fetch is not set explicitly" in shown


def test_g6_a_startup_probe_is_ignored_with_a_word_and_the_pod_runs() -> None:
    world = RunPodInstallation()
    probe = {"httpGet": {"path": "/", "port": 8080}, "failureThreshold": 30}
    world.create_pod(**with_container(startupProbe=probe))
    world.pump()
    world.run(1)
    assert running(world.pod())
    (told,) = [one for one in events_of(world.emulator, "default") if one["reason"] == "Translated"]
    assert "startupProbe" in told["message"]


def test_g6_probes_have_one_declared_policy() -> None:
    probes = [BY_PATH[f"containers[].{kind}Probe"] for kind in ("startup", "liveness", "readiness")]
    assert {(field.treatment, field.note) for field in probes} == {
        (Treatment.IGNORED, "nobody runs probes; readiness follows the instance")
    }


@pytest.mark.parametrize("protocol", ["UDP", "SCTP"])
def test_g7_a_udp_port_is_refused_and_never_becomes_tcp(protocol: str) -> None:
    world = RunPodInstallation(ingress={"mode": "FirstPort", "authentication": "Application"})
    shown = _refused(world, **with_container(ports=[{"containerPort": 53, "protocol": protocol}]))
    assert "protocol (only TCP can be published)" in shown


@pytest.mark.parametrize(
    ("command", "args", "sent"),
    [
        (["serve"], None, {"entrypoint": ["serve"], "cmd": []}),
        (None, ["--port", "80"], {"cmd": ["--port", "80"]}),
        (["serve", "-v"], ["--port", "80"], {"entrypoint": ["serve", "-v"], "cmd": ["--port", "80"]}),
        (None, None, {}),
        (["--port", "80"], None, {"entrypoint": ["--port", "80"], "cmd": []}),
    ],
    ids=["command only clears the image's CMD", "args only", "both", "neither", "a command of flags only"],
)
def test_g8_command_is_the_entrypoint_and_args_the_cmd(
    command: list[str] | None, args: list[str] | None, sent: Object
) -> None:
    fields = {key: value for key, value in (("command", command), ("args", args)) if value is not None}
    body = _sent(RunPodInstallation(), **with_container(**fields))
    assert {key: body[key] for key in ("entrypoint", "cmd") if key in body} == sent


def test_g9_variables_expand_from_the_resolved_environment_and_doubled_dollars_are_literal() -> None:
    entries = [
        {"name": "EARLY", "value": "$(LATE)-$(NOWHERE)"},
        {"name": "LATE", "value": "late"},
        {"name": "AGAIN", "value": "$(LATE)/$$(LATE)/$"},
    ]
    fields = {"command": ["sh", "$(AGAIN)"], "args": ["$(LATE)", "$$(LATE)", "$(NOWHERE)", "$LATE"]}
    body = _sent(RunPodInstallation(), **with_container(env=entries, **fields))
    assert {key: body["env"][key] for key in ("EARLY", "LATE", "AGAIN")} == {
        "EARLY": "$(LATE)-$(NOWHERE)",
        "LATE": "late",
        "AGAIN": "late/$(LATE)/$",
    }
    assert body["entrypoint"] == ["sh", "late/$(LATE)/$"]
    assert body["cmd"] == ["late", "$(LATE)", "$(NOWHERE)", "$LATE"]


def test_g10_names_that_are_cut_stay_apart() -> None:
    long = "a" * 200
    ids = [f"{number:032x}"[::-1] for number in range(3)]
    for limit in (60, 191):
        cut = [instance_name("team", f"{long}-{number}", claim, limit) for number, claim in enumerate(ids)]
        assert len(set(cut)) == 3
        assert {len(name) for name in cut} == {limit}


def test_g10_two_pods_whose_namespace_and_name_read_alike_have_two_instances_with_two_names() -> None:
    world = RunPodInstallation()
    for namespace, name in (("a-b", "c"), ("a", "b-c")):
        world.emulator.create(NAMESPACES, "", {"metadata": {"name": namespace}})
        pod = world.emulator.create(PODS, namespace, pod_object(name))
        world.queue.append(about_pod("Pod Gated", pod))
    world.pump()
    names = [body["name"] for body in world.calls("POST", "/v2/pods")]
    assert len(set(names)) == len(world.alive()) == 2
    assert all(name.startswith("a-b-c-") for name in names)


@pytest.mark.parametrize(
    "sources",
    [
        [{"configMap": {"name": "settings"}}],
        [{"configMap": {"name": "settings", "items": [{"key": "MODEL", "path": "model"}]}}],
        [{"secret": {"name": "keys"}}],
        [{"serviceAccountToken": {"path": "token"}}, {"configMap": {"name": "settings"}}],
    ],
    ids=["no items", "items", "a Secret", "beside a token"],
)
def test_g11_a_projected_volume_is_refused_and_never_empty(sources: list[Object]) -> None:
    shown = _refused(
        _with_references(),
        volumes=[{"name": "config", "projected": {"sources": sources}}],
        containers=[{**MAIN, "volumeMounts": [{"name": "config", "mountPath": "/etc/app"}]}],
    )
    assert "spec.volumes[config]" in shown


def test_g12_a_port_that_is_declared_twice_is_published_once(runpod_guard: Guard) -> None:
    runpod_guard.opened |= {"8080/http", "9000/http"}
    world = RunPodInstallation(
        ingress={"mode": "Ports", "authentication": "Application", "ports": [{"port": 8080}, {"port": 9000}]}
    )
    twice = [{"containerPort": 8080}, {"containerPort": 8080, "protocol": "TCP"}, {"containerPort": 9000}]
    assert _sent(world, **with_container(ports=twice))["ports"] == ["8080/http", "9000/http"]


def test_g13_two_containers_on_one_port_are_refused_as_two_containers() -> None:
    port = {"ports": [{"containerPort": 8080}]}
    shown = _refused(RunPodInstallation(), containers=[{**MAIN, **port}, {**MAIN, "name": "twin", **port}])
    assert "one container per Pod, found: main, twin" in shown
