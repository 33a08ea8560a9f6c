"""Put fixtures into the Kubernetes emulator with their own uids, as a restored backup would.

Created through the API they would get new uids, and the sample events would speak of other Pods. Only their age is
new: a Pod of the day on which its fixture was written would be shown, and measured, as waiting since then.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from local.deployment import ROOT
from local.kubernetes.metadata import timestamp
from local.kubernetes.resources import BY_KIND, NAMESPACES
from local.kubernetes.server import Emulator

FIXTURES = ROOT / "local" / "fixtures"


def fixtures(directory: Path = FIXTURES) -> list[dict[str, Any]]:
    """Every fixture, in the order in which the cluster wrote them."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(directory.glob("*.json"))]
    return sorted(found, key=_version)


def restore(emulator: Emulator, objects: list[dict[str, Any]]) -> None:
    """Write objects as they are, created now: uid, resourceVersion, status and managed fields included."""
    created = timestamp(emulator.clock.now())
    with emulator.store.lock:
        for original in objects:
            stored = dict(original)
            resource = BY_KIND[stored.pop("apiVersion"), stored.pop("kind")]
            metadata = stored["metadata"] = {**stored["metadata"], "creationTimestamp": created}
            namespace = metadata["namespace"] if resource.namespaced else ""
            if namespace and emulator.read(NAMESPACES, "", namespace) is None:
                emulator.create(NAMESPACES, "", {"metadata": {"name": namespace}})
            emulator.store.version = max(emulator.store.version, _version(original) - 1)
            emulator.store.write(resource, (namespace, metadata["name"]), stored)


def _version(item: dict[str, Any]) -> int:
    return int(item["metadata"]["resourceVersion"])
