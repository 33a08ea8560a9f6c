"""Environment, command and arguments as a kubelet resolves them; values never in an error."""

from __future__ import annotations

from typing import Any

import pytest
from nebula.kubernetes.workload import InvalidPodError, Translation, WaitingForReferenceError, translate

from tests.support.pods import References, container, node_pool, pod

SECRET = "hunter2-do-not-show"


def run(references: References | None = None, *, node_name: str | None = None, **fields: Any) -> Translation:
    found = pod(container(**fields), annotations={"team.example.com/owner": "ml"}, labels={"tier": "gold"})
    return translate(found, node_pool(), (references or References()).api, node_name=node_name)


def env(references: References | None = None, **fields: Any) -> dict[str, str]:
    resolved = run(references, **fields).workload.env
    return {name: value.get_secret_value() for name, value in resolved.items()}


def from_key(kind: str, name: str, key: str, *, optional: bool = False) -> dict[str, Any]:
    reference = {"name": name, "key": key, "optional": optional}
    return {"name": "VALUE", "valueFrom": {f"{kind}KeyRef": reference}}


def field(path: str) -> dict[str, Any]:
    return {"name": "VALUE", "valueFrom": {"fieldRef": {"fieldPath": path}}}


def resource(path: str, divisor: str | None = None, container_name: str | None = None) -> dict[str, Any]:
    reference = {"resource": path, "divisor": divisor, "containerName": container_name}
    return {"name": "VALUE", "valueFrom": {"resourceFieldRef": reference}}


def test_env_from_in_order_with_prefixes_and_env_overriding() -> None:
    references = References(secrets={"s": {"A": "secret", "B": "secret"}}, config_maps={"m": {"A": "map", "C": "$(A)"}})
    sources = [
        {"configMapRef": {"name": "m"}},
        {"secretRef": {"name": "s"}},
        {"prefix": "P_", "configMapRef": {"name": "m"}},
    ]
    values = env(references, envFrom=sources, env=[{"name": "B", "value": "own"}, {"name": "D", "value": "$(C)"}])
    assert values == {"A": "secret", "B": "own", "C": "$(A)", "D": "$(A)", "P_A": "map", "P_C": "$(A)"}


def test_value_from_is_read_from_the_pod_s_own_namespace_once_per_object() -> None:
    references = References(secrets={"s": {"k": SECRET, "l": "other"}})
    entries = [from_key("secret", "s", "k"), {**from_key("secret", "s", "l"), "name": "OTHER"}]
    assert env(references, env=entries) == {"VALUE": SECRET, "OTHER": "other"}
    assert references.reads == [("team", "s")]


def test_a_non_empty_value_beats_value_from_and_an_empty_entry_is_an_empty_text() -> None:
    both = {**from_key("secret", "missing", "k"), "value": "plain"}
    assert env(env=[both, {"name": "EMPTY"}, {"name": "ALSO", "value": ""}]) == {
        "VALUE": "plain",
        "EMPTY": "",
        "ALSO": "",
    }


def test_newlines_quotes_and_odd_names_are_kept() -> None:
    odd = {"app.kubernetes.io/name": 'two\nlines "quoted" \\ $HOME ü', "with space": "1"}
    assert env(References(config_maps={"m": odd}), envFrom=[{"configMapRef": {"name": "m"}}]) == odd


@pytest.mark.parametrize("kind", ["secret", "configMap"])
def test_optional_references_that_are_missing_leave_the_variable_unset(kind: str) -> None:
    sources = [{f"{kind}Ref": {"name": "missing", "optional": True}}]
    references = References(secrets={"s": {}}, config_maps={"s": {}})
    entries = [from_key(kind, "missing", "k", optional=True), from_key(kind, "s", "k", optional=True)]
    assert env(references, envFrom=sources, env=entries) == {}


@pytest.mark.parametrize("kind", ["secret", "configMap"])
@pytest.mark.parametrize("name", ["missing", "s"])
def test_g2_a_missing_object_or_key_is_waited_for_and_named(kind: str, name: str) -> None:
    references = References(secrets={"s": {"other": SECRET}}, config_maps={"s": {"other": SECRET}})
    with pytest.raises(WaitingForReferenceError, match=name) as raised:
        run(references, env=[from_key(kind, name, "key")])
    assert SECRET not in str(raised.value)


def test_f4_an_object_that_may_not_be_read_is_waited_for() -> None:
    with pytest.raises(WaitingForReferenceError, match="grants no access"):
        run(References(forbidden=True), env=[from_key("secret", "s", "k")])


def test_y7_bytes_that_are_no_text_are_refused_by_key_without_the_value() -> None:
    references = References(secrets={"s": {"bin": b"hunter2\xff\xfe"}})
    with pytest.raises(InvalidPodError, match="Secret s, key bin") as raised:
        run(references, env=[from_key("secret", "s", "bin")])
    assert "hunter2" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


def test_y7_a_nul_in_a_value_is_refused_by_name() -> None:
    with pytest.raises(InvalidPodError, match="VALUE holds a NUL") as raised:
        run(References(secrets={"s": {"k": f"{SECRET}\0"}}), env=[from_key("secret", "s", "k")])
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "web-0"),
        ("metadata.namespace", "team"),
        ("metadata.uid", "uid-1"),
        ("metadata.labels['tier']", "gold"),
        ("metadata.annotations['team.example.com/owner']", "ml"),
        ("metadata.labels['none']", ""),
        ("spec.serviceAccountName", "default"),
    ],
)
def test_g4_downward_fields_that_are_known(path: str, value: str) -> None:
    assert env(env=[field(path)]) == {"VALUE": value}


def test_g4_the_node_s_name_is_known_once_a_provider_is_chosen() -> None:
    assert (
        run(node_name="nebula-runpod", env=[field("spec.nodeName")]).workload.env["VALUE"].get_secret_value()
        == "nebula-runpod"
    )
    with pytest.raises(InvalidPodError, match=r"spec\.nodeName"):
        run(env=[field("spec.nodeName")])


@pytest.mark.parametrize(
    "path",
    [
        "status.podIP",
        "status.podIPs",
        "status.hostIP",
        "status.hostIPs",
        "metadata.labels",
        "spec.containers",
        "metadata.annotations['nebula.inftyai.com/endpoint']",
    ],
)
def test_g4_downward_fields_that_are_not_are_refused_by_name(path: str) -> None:
    with pytest.raises(InvalidPodError, match="VALUE"):
        run(env=[field(path)])


@pytest.mark.parametrize(
    ("path", "divisor", "value"),
    [
        ("limits.memory", "1Mi", "1537"),
        ("limits.memory", None, "1611137024"),
        ("requests.cpu", None, "1"),
        ("requests.cpu", "1m", "250"),
        ("requests.cpu", "0", "1"),
        ("limits.nvidia.com/gpu", None, "0"),
    ],
)
def test_resource_fields_are_explicit_values_rounded_up(path: str, divisor: str | None, value: str) -> None:
    resources = {"requests": {"cpu": "250m"}, "limits": {"memory": "1573376Ki", "nvidia.com/gpu": "0"}}
    assert env(resources=resources, env=[resource(path, divisor)]) == {"VALUE": value}


@pytest.mark.parametrize("path", ["limits.cpu", "requests.memory", "allocatable.cpu", ""])
def test_g5_resource_fields_without_an_explicit_value_are_refused(path: str) -> None:
    with pytest.raises(InvalidPodError, match="VALUE"):
        run(resources={"requests": {"cpu": "1"}}, env=[resource(path)])


def test_g5_a_resource_field_of_another_container_is_refused() -> None:
    with pytest.raises(InvalidPodError, match="container setup"):
        run(resources={"requests": {"cpu": "1"}}, env=[resource("requests.cpu", None, "setup")])


def test_a_source_that_is_not_known_is_refused_by_name() -> None:
    with pytest.raises(InvalidPodError, match="fileKeyRef"):
        run(env=[{"name": "VALUE", "valueFrom": {"fileKeyRef": {"path": "x"}}}])


@pytest.mark.parametrize("name", ["NEBULA_CLAIM", "NEBULA_", "NEBULA_ANYTHING"])
def test_the_mark_s_names_may_not_be_set_by_a_pod(name: str) -> None:
    with pytest.raises(InvalidPodError, match=name):
        run(env=[{"name": name, "value": SECRET}])
    with pytest.raises(InvalidPodError, match=name) as raised:
        run(References(config_maps={"m": {name: SECRET}}), envFrom=[{"configMapRef": {"name": "m"}}])
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize("name", ["", "A=B", "new\nline", "ü"])
def test_names_that_no_kubelet_passes_on_are_refused(name: str) -> None:
    with pytest.raises(InvalidPodError, match="environment name"):
        run(env=[{"name": name, "value": "1"}])


def test_g9_command_and_args_see_the_whole_environment() -> None:
    workload = run(
        command=["/bin/$(SHELL_NAME)", "$$(SHELL_NAME)"],
        args=["$(LATER)", "$(UNKNOWN)"],
        env=[{"name": "SHELL_NAME", "value": "sh"}, {"name": "LATER", "value": "$(SHELL_NAME) -c"}],
    ).workload
    assert workload.command == ("/bin/sh", "$(SHELL_NAME)")
    assert workload.args == ("sh -c", "$(UNKNOWN)")


def test_variables_that_multiply_each_other_are_refused_before_they_fill_the_memory() -> None:
    env = [{"name": "V0", "value": "0123456789"}]
    env += [{"name": f"V{n}", "value": f"$(V{n - 1})" * 10} for n in range(1, 30)]
    with pytest.raises(InvalidPodError, match="no process can be given") as caught:
        run(env=env)
    assert caught.value.reason == "EnvironmentTooLarge"
    with pytest.raises(InvalidPodError, match="no process can be given"):
        run(env=env[:5], args=["$(V4)" * 10] * 3)
    with pytest.raises(InvalidPodError, match="no process can be given"):
        run(env=[{"name": "V", "value": "x" * 2**20}], args=["x" * 2**20, "y"])


def test_a_pod_that_refers_to_hundreds_of_objects_is_refused_before_they_are_read() -> None:
    references = References(secrets={f"s{n}": {"k": "v"} for n in range(100)})
    sources = [{"secretRef": {"name": f"s{n}", "optional": True}} for n in range(300)]
    assert len(run(references, envFrom=[*sources[:100], *sources[:100]]).workload.env) == 1
    with pytest.raises(InvalidPodError, match="more than 100 Secrets") as caught:
        run(references, envFrom=sources)
    assert caught.value.reason == "TooManyReferences"


def test_a_large_environment_is_the_provider_s_to_judge() -> None:
    values = run(env=[{"name": "A", "value": "x" * 2**20}, {"name": "B", "value": "x"}], args=["$(B)$$"]).workload
    assert len(values.env["A"].get_secret_value()) == 2**20
    assert values.args == ("x$",)


@pytest.mark.parametrize("command", [None, ["run"]])
@pytest.mark.parametrize("args", [None, ["--flag"]])
def test_g8_command_and_args_stay_apart(command: list[str] | None, args: list[str] | None) -> None:
    workload = run(command=command, args=args).workload
    assert workload.command == (None if command is None else tuple(command))
    assert workload.args == (None if args is None else tuple(args))


def test_a_resolved_workload_shows_no_value() -> None:
    workload = run(
        References(secrets={"s": {"k": SECRET}}), command=["$(VALUE)"], env=[from_key("secret", "s", "k")]
    ).workload
    assert workload.command == (SECRET,)
    assert SECRET not in repr(workload)
    assert SECRET not in str(workload)
