"""What ``kubectl apply --server-side`` does, on raw calls: every field is validated strictly."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from tests.support.kubernetes_api import Api
from tests.support.kustomize import manifests

CLUSTER_FOLDER = Path(__file__).parents[2] / "cluster"
APPLY = "application/apply-patch+yaml"
STRICT = {"fieldValidation": "Strict"}
_SECONDS = 20.0
Object = dict[str, Any]


def documents(path: Path) -> list[Object]:
    """The objects of a file."""
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def installation() -> list[Object]:
    """What ``cluster/`` installs, with the policy that adds the gate."""
    return [*manifests(CLUSTER_FOLDER), *documents(CLUSTER_FOLDER / "gating/add-gate.yaml")]


def path_of(api: Api, manifest: Object) -> str:
    """The path of an object, by what the server says it serves; waits for a kind that was just defined."""
    version, kind, metadata = manifest["apiVersion"], manifest["kind"], manifest["metadata"]
    root = f"/api/{version}" if "/" not in version else f"/apis/{version}"
    deadline = time.monotonic() + _SECONDS
    while True:
        _, served = api.call("GET", root)
        found = [r for r in served.get("resources", []) if r["kind"] == kind and "/" not in r["name"]]
        if found:
            break
        assert time.monotonic() < deadline, f"{version} {kind} is not served"
        time.sleep(0.1)
    space = f"/namespaces/{metadata.get('namespace', 'default')}" if found[0]["namespaced"] else ""
    return f"{root}{space}/{found[0]['name']}/{metadata['name']}"


def apply(api: Api, objects: Iterable[Object]) -> list[Object]:
    """Apply each object in order, and return them as the server keeps them."""
    query = {"fieldManager": "test", "force": "true", **STRICT}
    return [
        api.must("PATCH", path_of(api, one), one, query=query, content_type=APPLY) for one in objects if one is not None
    ]


def await_true(what: Any, message: str) -> None:
    """Poll until ``what()`` holds: admission policies take effect some moments after they were written."""
    deadline = time.monotonic() + _SECONDS
    while not what():
        assert time.monotonic() < deadline, message
        time.sleep(0.1)
