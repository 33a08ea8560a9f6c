"""As much of ``/openapi/v3`` as ``kubectl apply`` asks for: that the server checks fields itself.

kubectl looks whether a kind's PATCH takes ``fieldValidation``; where it does, no schema is downloaded.
"""

from __future__ import annotations

from local.kubernetes.errors import Object
from local.kubernetes.resources import RESOURCES, Resource

_ROOT = "/openapi/v3"


def describe(path: str) -> Object | None:
    """The index, or the document of one group and version; None for any other path."""
    versions = {_base(resource): resource.api_version for resource in RESOURCES}
    if path == _ROOT:
        return {"paths": {base: {"serverRelativeURL": f"{_ROOT}/{base}?hash=local"} for base in versions}}
    version = versions.get(path.removeprefix(f"{_ROOT}/"))
    if version is None:
        return None
    served = [resource for resource in RESOURCES if resource.api_version == version]
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "local"},
        "paths": dict(map(_path, served)),
    }


def _base(resource: Resource) -> str:
    return f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}"


def _path(resource: Resource) -> tuple[str, Object]:
    where = "namespaces/{namespace}/" if resource.namespaced else ""
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    patch = {
        "parameters": [{"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": kind,
    }
    return f"/{_base(resource)}/{where}{resource.plural}/{{name}}", {"patch": patch}
