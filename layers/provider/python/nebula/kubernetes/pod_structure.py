"""The shape that the rest of the code relies on when it reads a Pod as plain JSON.

An API server guarantees it; a manifest handed to ``explain`` does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_SPEC_LISTS: Final = (
    "containers",
    "initContainers",
    "readinessGates",
    "schedulingGates",
    "tolerations",
    "topologySpreadConstraints",
    "volumes",
)
_SPEC_OBJECTS: Final = ("affinity", "nodeSelector")
_CONTAINER_LISTS: Final = ("env", "envFrom", "ports", "volumeMounts")
_CONTAINER_OBJECTS: Final = ("resources",)
_RESOURCE_OBJECTS: Final = ("limits", "requests")


class MalformedPodError(ValueError):
    """The object is not a Pod that can be read; the message names the field and shows no value."""


def check_structure(spec: Mapping[str, Any]) -> None:
    """Lists hold objects and objects are objects, wherever they are read; MalformedPodError otherwise."""
    _check(spec, "spec", _SPEC_LISTS, _SPEC_OBJECTS)
    for index, container in enumerate(spec.get("containers") or []):
        where = f"spec.containers[{index}]"
        _check(container, where, _CONTAINER_LISTS, _CONTAINER_OBJECTS)
        _check(container.get("resources") or {}, f"{where}.resources", (), _RESOURCE_OBJECTS)


def _check(value: Mapping[str, Any], where: str, lists: tuple[str, ...], objects: tuple[str, ...]) -> None:
    for key in lists:
        found = value.get(key)
        if found is not None and not (isinstance(found, list) and all(isinstance(item, dict) for item in found)):
            raise MalformedPodError(f"{where}.{key}: expected a list of objects")
    for key in objects:
        if not isinstance(value.get(key), dict | None):
            raise MalformedPodError(f"{where}.{key}: expected an object")
