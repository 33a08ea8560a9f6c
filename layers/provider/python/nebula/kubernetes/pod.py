"""A Pod as decoded JSON, read through one frozen view.

Nothing is copied into models: unknown fields of newer servers survive, and a malformed Pod is
refused with the field named and no value shown.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from nebula.clock import parse_time
from nebula.kubernetes import names
from nebula.kubernetes.api import Object
from nebula.kubernetes.pod_structure import MalformedPodError, check_structure

#: Parts of ``spec`` that provisioning does not use: the scheduler's, and what others may rewrite.
_UNUSED_SPEC: Final = frozenset(
    {"schedulingGates", "tolerations", "nodeSelector", "nodeName", "affinity", "ephemeralContainers"}
)
_USED_LABELS: Final = (names.LABEL_ENABLED, names.LABEL_NODE_POOL, names.LABEL_ACCELERATOR_TYPE)
_METADATA_REFERENCE: Final = ("metadata.labels['", "metadata.annotations['")
__all__ = ["TERMINAL_PHASES", "MalformedPodError", "Pod"]
TERMINAL_PHASES: Final = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True)
class Pod:
    """A Pod at one resourceVersion. ``object`` is the decoded JSON; do not change it."""

    object: Object = field(repr=False)
    namespace: str
    name: str
    uid: str
    resource_version: str
    generation: int | None
    labels: Mapping[str, str]
    annotations: Mapping[str, str] = field(repr=False)
    created_at: datetime | None
    deletion_timestamp: datetime | None
    node_name: str | None
    phase: str
    restart_policy: str
    containers: tuple[Object, ...] = field(repr=False)

    @classmethod
    def from_object(cls, value: Mapping[str, Any]) -> Pod:
        """Read an API object; MalformedPodError names the first field that cannot be read."""
        metadata = _mapping(value, "metadata", "metadata")
        spec = _mapping(value, "spec", "spec")
        status = _mapping(value, "status", "status")
        check_structure(spec)
        for key in ("name", "uid"):
            if not isinstance(metadata.get(key), str) or not metadata[key]:
                raise MalformedPodError(f"metadata.{key}: expected text")
        generation = metadata.get("generation")
        return cls(
            object=dict(value),
            namespace=str(metadata.get("namespace") or "default"),
            name=metadata["name"],
            uid=metadata["uid"],
            resource_version=str(metadata.get("resourceVersion") or ""),
            generation=generation if isinstance(generation, int) else None,
            labels=_texts(metadata, "labels"),
            annotations=_texts(metadata, "annotations"),
            created_at=parse_time(metadata.get("creationTimestamp")),
            deletion_timestamp=parse_time(metadata.get("deletionTimestamp")),
            node_name=spec.get("nodeName") or None,
            phase=str(status.get("phase") or "Pending"),
            restart_policy=str(spec.get("restartPolicy") or "Always"),
            containers=tuple(spec.get("containers") or ()),
        )

    @property
    def spec(self) -> Object:
        """``spec`` as decoded."""
        spec: Object = self.object["spec"]
        return spec

    @property
    def status(self) -> Object:
        """``status`` as decoded; empty when there is none."""
        status: Object = self.object.get("status") or {}
        return status

    @property
    def enabled(self) -> bool:
        """Whether the opt-in label says ``"true"``."""
        return self.labels.get(names.LABEL_ENABLED) == names.ENABLED

    @property
    def gates(self) -> tuple[str, ...]:
        """Names of all scheduling gates."""
        found = self.spec.get("schedulingGates") or []
        return tuple(str(gate.get("name")) for gate in found)

    @property
    def gated(self) -> bool:
        """Whether our gate is present."""
        return names.GATE in self.gates

    @property
    def foreign_gates(self) -> tuple[str, ...]:
        """Gates of others: while there are any, the Pod is not ours yet."""
        return tuple(gate for gate in self.gates if gate != names.GATE)

    @property
    def node_pool(self) -> str | None:
        """The NodePool that the Pod names."""
        return self.labels.get(names.LABEL_NODE_POOL) or None

    @property
    def terminal(self) -> bool:
        """Whether the phase is Succeeded or Failed."""
        return self.phase in TERMINAL_PHASES

    @property
    def active_deadline_seconds(self) -> int | None:
        """``spec.activeDeadlineSeconds``; nobody but us enforces it."""
        found = self.spec.get("activeDeadlineSeconds")
        return found if isinstance(found, int) else None

    @property
    def claim_annotation(self) -> str | None:
        """The claim id written at release."""
        return self.annotations.get(names.ANNOTATION_CLAIM) or None

    def condition(self, type_: str) -> Object | None:
        """The condition of that type, or None."""
        found = self.status.get("conditions") or []
        return next((c for c in found if isinstance(c, dict) and c.get("type") == type_), None)

    def fields_hash(self) -> str:
        """SHA-256 over what provisioning uses of the Pod, in hex.

        In it: the spec without gates, tolerations, nodeSelector and what only the scheduler reads; the
        opt-in, NodePool and accelerator labels; the ingress annotation; and every label or annotation
        that the environment refers to. Not in it: status, other labels and annotations.
        """
        spec = {key: value for key, value in self.spec.items() if key not in _UNUSED_SPEC}
        used = {
            "spec": spec,
            "labels": {key: self.labels.get(key) for key in _USED_LABELS},
            "ingress": self.annotations.get(names.ANNOTATION_INGRESS_PORTS),
            "referenced": [self.metadata_field(path) for path in _references(self.containers)],
        }
        text = json.dumps(used, sort_keys=True, separators=(",", ":"), default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    def metadata_field(self, path: str) -> str | None:
        """``metadata.labels['k']`` or ``metadata.annotations['k']``; None when the path is another."""
        for prefix, values in zip(_METADATA_REFERENCE, (self.labels, self.annotations), strict=True):
            if path.startswith(prefix) and path.endswith("']"):
                return values.get(path[len(prefix) : -2], "")
        return None


def _references(containers: tuple[Object, ...]) -> list[str]:
    paths = set()
    for container in containers:
        for entry in container.get("env") or []:
            source = entry.get("valueFrom")
            reference = source.get("fieldRef") if isinstance(source, dict) else None
            if isinstance(reference, dict):
                paths.add(str(reference.get("fieldPath")))
    return sorted(path for path in paths if path.startswith(_METADATA_REFERENCE))


def _mapping(value: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    found = value.get(key)
    if found is None and key == "status":
        return {}
    if not isinstance(found, Mapping):
        raise MalformedPodError(f"{where}: expected an object")
    return found


def _texts(metadata: Mapping[str, Any], key: str) -> dict[str, str]:
    found = metadata.get(key) or {}
    if not isinstance(found, Mapping):
        raise MalformedPodError(f"metadata.{key}: expected an object")
    return {str(name): value for name, value in found.items() if isinstance(value, str)}
