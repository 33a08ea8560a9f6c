"""Discovery documents: enough for ``kubectl get --raw`` and for asking what an API group serves."""

from __future__ import annotations

from local.kubernetes import openapi
from local.kubernetes.errors import Object
from local.kubernetes.resources import RESOURCES, Resource

_VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]


def describe(path: str) -> Object | None:
    """The document of a discovery path, or None when the path names objects."""
    if path.startswith("/openapi/"):
        return openapi.describe(path)
    parts = path.strip("/").split("/")
    if parts == ["version"]:
        return {"major": "1", "minor": "36", "gitVersion": "v1.36.0-emulated"}
    if parts == ["api"]:
        return {"kind": "APIVersions", "versions": ["v1"]}
    if parts == ["apis"]:
        groups = sorted({resource.group for resource in RESOURCES if resource.group})
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(group) for group in groups]}
    if len(parts) == 2 and parts[0] == "apis":
        known = any(resource.group == parts[1] for resource in RESOURCES)
        return {"kind": "APIGroup", "apiVersion": "v1", **_group(parts[1])} if known else None
    if (len(parts) == 2 and parts[0] == "api") or (len(parts) == 3 and parts[0] == "apis"):
        served = [resource for resource in RESOURCES if resource.api_version == "/".join(parts[1:])]
        return _resources(served) if served else None
    return None


def _group(group: str) -> Object:
    versions = sorted({resource.version for resource in RESOURCES if resource.group == group})
    listed = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def _resources(served: list[Resource]) -> Object:
    listed: list[Object] = []
    for resource in served:
        entry = {"name": resource.plural, "kind": resource.kind, "namespaced": resource.namespaced}
        listed.append({**entry, "singularName": resource.kind.lower(), "verbs": _VERBS})
        if resource.status:
            listed.append({**entry, "name": f"{resource.plural}/status", "singularName": "", "verbs": ["get", "patch"]})
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": served[0].api_version,
        "resources": listed,
    }
