"""A Pod from what a user has in a file: a Pod, or an object with a Pod template. For dry runs only."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from nebula.kubernetes.pod import MalformedPodError, Pod

#: Where the Pod template of a kind is; every other kind with ``spec.template`` is read the same way.
_DEEPER: Final = {"CronJob": ("spec", "jobTemplate")}
DRY_RUN_UID: Final = "dry-run"


def pod_template(value: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What Pods are made from: the object itself where it is a Pod, else its Pod template; None without one.

    A ``spec.template`` without a ``spec`` is another thing's: that of a Secret, for instance.
    """
    kind = str(value.get("kind") or "Pod")
    if kind == "Pod":
        return value
    holder: Any = value
    for key in (*_DEEPER.get(kind, ()), "spec", "template"):
        holder = holder.get(key) if isinstance(holder, Mapping) else None
    return holder if isinstance(holder, Mapping) and "spec" in holder else None


def pod_from_manifest(value: Mapping[str, Any]) -> Pod:
    """The Pod that the object describes, with the name and uid that a server would add.

    Raises ``MalformedPodError`` when there is none.
    """
    found = pod_template(value)
    if found is None:
        raise MalformedPodError(f"kind {value.get('kind')} holds no Pod template")
    pod = copy.deepcopy(dict(found))
    named = value.get("metadata") or {}
    metadata = pod.setdefault("metadata", {})
    if not isinstance(metadata, dict) or not isinstance(named, Mapping):
        raise MalformedPodError("metadata: expected an object")
    found_name = named.get("name") or named.get("generateName") or "pod"
    fallbacks = {"name": found_name, "namespace": named.get("namespace") or "default", "uid": DRY_RUN_UID}
    for key, fallback in fallbacks.items():
        metadata[key] = metadata.get(key) or fallback
    return Pod.from_object(pod)
