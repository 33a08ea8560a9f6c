"""``nebula gating``: which of the two gate policies a cluster's API server can run, and applying it.

``kubectl`` asks and applies: it knows every way to log in to a cluster, and whoever installs a policy has it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).resolve().parents[1] / "cluster" / "gating"
_GROUP: Final = "/apis/admissionregistration.k8s.io/v1"
_SECONDS: Final = 60
ADDS: Final = "add-gate.yaml"
REQUIRES: Final = "require-gate.yaml"
#: File, the resource that has to be served, and what it does.
_CHOICES: Final = (
    (ADDS, "mutatingadmissionpolicies", "the API server can add the gate to each opted-in Pod (Kubernetes 1.36)"),
    (
        REQUIRES,
        "validatingadmissionpolicies",
        "the API server can only refuse an opted-in Pod without the gate (Kubernetes 1.30 to 1.35): its template must "
        "have it, and the refusal says how",
    ),
)

#: Runs a command, its output captured as text.
Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


def choose(served: Collection[str]) -> tuple[str, str] | None:
    """(file, why) for the resources that ``admissionregistration.k8s.io/v1`` serves; None when neither policy is."""
    for file, resource, why in _CHOICES:
        if resource in served:
            return file, why
    return None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See ``cli.__main__.Command``."""
    parser.add_argument("--apply", action="store_true", help="apply the policy, instead of naming its file")
    parser.add_argument("--kubeconfig", help="as for kubectl")
    parser.add_argument("--context", help="as for kubectl: which cluster of the kubeconfig")


def run(arguments: argparse.Namespace) -> int:
    """Ask and print or apply. Exit code 1 when the API server could not be asked, runs neither, or refuses."""
    found = shutil.which("kubectl")
    if found is None:
        print("no kubectl here, so the API server cannot be asked. By its version (kubectl version, or your provider):")
        for file, resource, why in _CHOICES:
            print(f"  {_FOLDER / file}\n    if {_GROUP} lists {resource}: {why}")
        return 1
    options = [
        f"--{name}={value}"
        for name, value in (("kubeconfig", arguments.kubeconfig), ("context", arguments.context))
        if value
    ]
    return install([found, *options], apply=arguments.apply)


def install(kubectl: Sequence[str], *, apply: bool, execute: Run | None = None) -> int:
    """What ``run`` does once it has a kubectl."""
    execute = execute or _execute
    served = _served(execute([*kubectl, "get", "--raw", _GROUP]))
    if served is None:
        return 1
    chosen = choose(served)
    if chosen is None:
        print(f"{_GROUP} serves neither kind of policy: Kubernetes before 1.30 is not supported", file=sys.stderr)
        return 1
    file, why = chosen
    print(f"{_FOLDER / file}\n  {why}")
    if not apply:
        return 0
    done = execute([*kubectl, "apply", "-f", str(_FOLDER / file)])
    print(done.stdout, end="")
    print(done.stderr, end="", file=sys.stderr)
    return 0 if done.returncode == 0 else 1


def _served(asked: subprocess.CompletedProcess[str]) -> set[str] | None:
    """Names of the served resources; None, said on stderr, when the answer is no discovery document."""
    try:
        answer = json.loads(asked.stdout) if asked.returncode == 0 else None
        return {str(one["name"]) for one in answer["resources"]}  # type: ignore[index]
    except (ValueError, KeyError, TypeError):
        print(f"kubectl could not ask what {_GROUP} serves: {asked.stderr.strip()}", file=sys.stderr)
        return None


def _execute(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(list(command), 1, "", f"kubectl: {error}")
