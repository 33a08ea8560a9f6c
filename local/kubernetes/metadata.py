"""Rules of ``metadata`` that hold for every kind, and the decoding errors of common fields."""

from __future__ import annotations

import re
import uuid
from datetime import datetime
from random import Random
from typing import Any

from local.kubernetes.errors import ApiError, Cause, Object, bad_request, conflict, invalid, undecodable
from local.kubernetes.resources import NAMESPACES, NODE_POOLS, PODS, Resource

_SUBDOMAIN = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
_QUALIFIED = re.compile(r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")
_LABEL_VALUE = re.compile(r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$")
_TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$")
# Pointers to structs: an empty one is not the same as none.
_POINTERS = frozenset({"securityContext", "affinity", "emptyDir"})
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
_MAX_ANNOTATIONS = 256 * 1024
_KEPT = ("creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "uid", "selfLink")
# Kinds of which the server counts changes of spec in metadata.generation (Pods since 1.33).
_COUNTED = frozenset({PODS, NODE_POOLS})


def timestamp(moment: datetime) -> str:
    """A ``metav1.Time``."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def require_time(value: Any, field: str) -> None:
    """400 unless ``value`` is null or an RFC 3339 time."""
    if value is not None and (not isinstance(value, str) or not _TIME.match(value)):
        raise undecodable(f"cannot decode {field} as a time")


def is_qualified(name: object) -> bool:
    """Whether ``name`` is a label key, condition type or gate name."""
    return isinstance(name, str) and bool(_QUALIFIED.match(name))


def is_subdomain(name: object) -> bool:
    """Whether ``name`` is a DNS-1123 subdomain."""
    return isinstance(name, str) and len(name) <= 253 and bool(_SUBDOMAIN.match(name))


def require_envelope(resource: Resource, obj: Object, namespace: str) -> Object:
    """Check kind, apiVersion and namespace of a body and return its metadata."""
    kind, version = obj.get("kind", resource.kind), obj.get("apiVersion", resource.api_version)
    if (kind, version) != (resource.kind, resource.api_version):
        raise bad_request(f"the object provided is unrecognized: expected {resource.api_version} {resource.kind}")
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        raise undecodable("metadata must be an object")
    if metadata.get("namespace", namespace) not in (namespace, ""):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    return metadata


def at_create(resource: Resource, obj: Object, namespace: str, now: datetime, chance: Random) -> str:
    """Fill in what the server owns and return the name; the UID and a generated name come from ``chance``."""
    metadata = dict(require_envelope(resource, obj, namespace))
    if metadata.get("resourceVersion"):
        raise ApiError(500, "resourceVersion should not be set on objects to be created")
    name = metadata.get("name") or _generated(metadata, chance)
    cluster_role_like = resource.group == "rbac.authorization.k8s.io"
    if not is_subdomain(name) and not (cluster_role_like and isinstance(name, str) and name):
        raise invalid(resource.kind, str(name), Cause("metadata.name", "a lowercase RFC 1123 subdomain is required"))
    # A client may send managedFields of its own at a create; nobody is recorded here who sends none.
    for field in (*_KEPT, "resourceVersion"):
        metadata.pop(field, None)
    metadata |= {
        "name": name,
        "uid": str(uuid.UUID(int=chance.getrandbits(128), version=4)),
        "creationTimestamp": timestamp(now),
    }
    if resource.namespaced:
        metadata["namespace"] = namespace
    if resource in _COUNTED:
        metadata["generation"] = 1
    _require_maps(resource, name, metadata)
    obj["metadata"] = metadata
    obj.pop("kind", None)
    obj.pop("apiVersion", None)
    if resource.status and not resource.status_at_create:
        obj.pop("status", None)
    if resource is NAMESPACES:
        obj["spec"] = {"finalizers": ["kubernetes"]}
        obj["status"] = {"phase": "Active"}
        metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": name}
    return str(name)


def _generated(metadata: Object, chance: Random) -> str:
    prefix = metadata.get("generateName")
    if not isinstance(prefix, str) or not prefix:
        raise invalid("", "", Cause("metadata.name", "name or generateName is required", "FieldValueRequired"))
    return prefix[:58] + "".join(chance.choices(_SUFFIX, k=5))


def at_update(resource: Resource, old: Object, new: Object, *, put: bool) -> None:
    """Check what a writer may not change and put back what the server owns. ``new`` is changed, ``old`` is not."""
    before, after = old["metadata"], new.get("metadata")
    if not isinstance(after, dict):
        raise undecodable("metadata must be an object")
    name = before["name"]
    if after.get("name", name) != name:
        raise bad_request("the name of the object does not match the name on the URL")
    if after.get("namespace") not in (before.get("namespace"), None):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    version = after.get("resourceVersion")
    if version and version != before["resourceVersion"]:
        why = "the object has been modified; please apply your changes to the latest version and try again"
        raise conflict(resource.qualified, name, why)
    uid = after.get("uid")
    if uid and uid != before["uid"]:
        if put:
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {before['uid']}"
            raise conflict(resource.qualified, name, why)
        raise invalid(resource.kind, name, Cause("metadata.uid", "field is immutable"))
    after = dict(after)
    for field in (*_KEPT, "resourceVersion", "name", "namespace"):
        after.pop(field, None)
        if field in before:
            after[field] = before[field]
    _require_maps(resource, name, after)
    if "deletionTimestamp" in before and set(after.get("finalizers") or []) - set(before.get("finalizers") or []):
        message = "no new finalizers can be added if the object is being deleted"
        raise invalid(resource.kind, name, Cause("metadata.finalizers", message, "FieldValueForbidden"))
    new["metadata"] = after
    new.pop("kind", None)
    new.pop("apiVersion", None)


def count_change(resource: Resource, old: Object, new: Object) -> None:
    """Move ``metadata.generation`` when spec changed (``new`` owns its metadata)."""
    if resource in _COUNTED and old.get("spec") != new.get("spec"):
        new["metadata"]["generation"] = old["metadata"]["generation"] + 1


def drop_empty(values: Object) -> None:
    """Leave out what Go's ``omitempty`` would: absent and empty lists and maps of optional fields."""
    for key in [key for key, value in values.items() if value is None or value in ([], {})]:
        if key not in _POINTERS:
            del values[key]


def _require_maps(resource: Resource, name: str, metadata: Object) -> None:
    for field in ("labels", "annotations"):
        value = metadata.get(field)
        if value is None:
            metadata.pop(field, None)
        elif not isinstance(value, dict) or any(not isinstance(text, str) for text in value.values()):
            raise undecodable(f"cannot decode metadata.{field} as a map of strings")
        elif any(not is_qualified(key) for key in value):
            raise invalid(resource.kind, name, Cause(f"metadata.{field}", "a key is no qualified name"))
    labels = metadata.get("labels") or {}
    if any(not _LABEL_VALUE.match(text) for text in labels.values()):
        raise invalid(resource.kind, name, Cause("metadata.labels", "a value is no label value"))
    annotations = metadata.get("annotations") or {}
    if sum(len(key) + len(text) for key, text in annotations.items()) > _MAX_ANNOTATIONS:
        cause = Cause("metadata.annotations", f"may not be more than {_MAX_ANNOTATIONS} bytes", "FieldValueTooLong")
        raise invalid(resource.kind, name, cause)
    if not isinstance(metadata.get("finalizers") or [], list):
        raise undecodable("cannot decode metadata.finalizers as a list")
    drop_empty(metadata)
