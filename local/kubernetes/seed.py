"""Put manifests into the emulator, as ``kubectl apply`` would."""

from __future__ import annotations

from typing import Any

import yaml

from local.kubernetes import objects
from local.kubernetes.errors import ApiError, Object, bad_request
from local.kubernetes.resources import BY_KIND, NAMESPACES, Resource, Route
from local.kubernetes.server import Emulator


def apply(emulator: Emulator, text: str, namespace: str = "default") -> list[Object]:
    """Create every object of a YAML text, or merge it into what is there; the stored objects.

    A namespace that is named and absent is made. ``ApiError`` when the emulator refuses an object.
    """
    documents = [document for document in yaml.safe_load_all(text) if document]
    return [apply_object(emulator, document, namespace) for document in documents]


def apply_object(emulator: Emulator, document: Any, namespace: str = "default") -> Object:
    """Create one object or merge it into the one of its name."""
    if not isinstance(document, dict):
        raise bad_request("a manifest is no object")
    resource = BY_KIND.get((str(document.get("apiVersion")), str(document.get("kind"))))
    if resource is None:
        raise ApiError(404, f"{document.get('apiVersion')} {document.get('kind')} is not served")
    metadata = document.get("metadata") or {}
    where = str(metadata.get("namespace") or namespace) if resource.namespaced else ""
    if where and emulator.read(NAMESPACES, "", where) is None:
        emulator.create(NAMESPACES, "", {"metadata": {"name": where}})
    name = str(metadata.get("name") or "")
    if not name or emulator.read(resource, where, name) is None:
        return emulator.create(resource, where, document)
    return _merge(emulator, resource, where, name, document)


def _merge(emulator: Emulator, resource: Resource, namespace: str, name: str, document: Object) -> Object:
    kind = "application/strategic-merge-patch+json" if resource.strategic else "application/merge-patch+json"
    body = {key: value for key, value in document.items() if key not in ("kind", "apiVersion")}
    with emulator.store.lock:
        objects.patch(emulator.store, Route(resource, namespace, name, ""), kind, body, emulator.admission)
    found = emulator.read(resource, namespace, name)
    if found is None:
        raise ApiError(404, f'{resource.qualified} "{name}" not found')
    return found
