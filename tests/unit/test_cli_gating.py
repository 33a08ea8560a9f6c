"""``nebula gating`` asks what the API server serves, and applies the policy that this one can run."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from cli.__main__ import main
from cli.gating import install
from local.kubernetes import discovery
from local.kubernetes.resources import MUTATING_POLICIES, RESOURCES, VALIDATING_POLICIES, Resource
from local.kubernetes.seed import apply
from local.kubernetes.server import Emulator

Done = subprocess.CompletedProcess[str]
GATING = Path(__file__).parents[2] / "cluster/gating"


class FakeKubectl:
    """``get --raw`` and ``apply -f`` on the emulator."""

    def __init__(self) -> None:
        self.emulator = Emulator()
        self.applied: list[str] = []

    def __call__(self, command: Sequence[str]) -> Done:
        verb, _, what = command[1:]
        if verb == "apply":
            self.applied.append(Path(what).name)
            apply(self.emulator, Path(what).read_text())
            return subprocess.CompletedProcess(command, 0, "created\n", "")
        answer = self.emulator.handle("GET", what, {}, {}, b"")
        assert isinstance(answer.body, bytes)
        status = 0 if answer.status == 200 else 1
        return subprocess.CompletedProcess(command, status, answer.body.decode(), "NotFound" if status else "")


def _without(monkeypatch: pytest.MonkeyPatch, *hidden: Resource) -> None:
    left = tuple(resource for resource in RESOURCES if resource not in hidden)
    monkeypatch.setattr(discovery, "RESOURCES", left)


@pytest.mark.parametrize(
    ("hidden", "file"), [((), "add-gate.yaml"), (MUTATING_POLICIES, "require-gate.yaml")], ids=["1.36", "1.30"]
)
def test_the_policy_that_the_server_can_run_is_applied(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], hidden: tuple[Resource, ...], file: str
) -> None:
    _without(monkeypatch, *hidden)
    kubectl = FakeKubectl()
    assert install(["kubectl"], apply=False, execute=kubectl) == 0
    assert str(GATING / file) in capsys.readouterr().out
    assert kubectl.applied == []
    assert install(["kubectl"], apply=True, execute=kubectl) == 0
    assert kubectl.applied == [file]


def test_a_server_that_runs_neither_is_said_to_be_too_old(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _without(monkeypatch, *MUTATING_POLICIES, *VALIDATING_POLICIES)
    monkeypatch.setattr(discovery, "describe", lambda _: {"resources": []})
    kubectl = FakeKubectl()
    assert install(["kubectl"], apply=True, execute=kubectl) == 1
    assert "before 1.30" in capsys.readouterr().err
    assert kubectl.applied == []


@pytest.mark.parametrize(
    "answer",
    [Done([], 1, "", "Unauthorized"), Done([], 0, "<html>", "Unauthorized"), Done([], 0, "[]", "Unauthorized")],
)
def test_nothing_is_applied_when_the_server_cannot_be_asked(answer: Done, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[str] = []

    def kubectl(command: Sequence[str]) -> Done:
        asked.append(command[1])
        return answer

    assert install(["kubectl"], apply=True, execute=kubectl) == 1
    assert asked == ["get"]
    assert "Unauthorized" in capsys.readouterr().err


def test_a_refused_policy_fails_the_command() -> None:
    emulated = FakeKubectl()

    def kubectl(command: Sequence[str]) -> Done:
        return Done(command, 1, "", "forbidden\n") if command[1] == "apply" else emulated(command)

    assert install(["kubectl"], apply=True, execute=kubectl) == 1


def test_without_kubectl_both_files_are_named_with_their_condition(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert main(["gating"]) == 1
    said = capsys.readouterr().out
    assert said.index("add-gate.yaml") < said.index("mutatingadmissionpolicies") < said.index("require-gate.yaml")


def test_both_policies_leave_system_namespaces_alone_and_fail_closed() -> None:
    for file in sorted(GATING.glob("*.yaml")):
        policy, binding = yaml.safe_load_all(file.read_text())
        (excluded,) = policy["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"]
        assert (excluded["key"], excluded["operator"]) == ("kubernetes.io/metadata.name", "NotIn")
        assert excluded["values"] == ["kube-system", "kube-node-lease", "kube-public"]
        assert policy["spec"]["failurePolicy"] == "Fail"
        assert binding["spec"]["policyName"] == policy["metadata"]["name"]
