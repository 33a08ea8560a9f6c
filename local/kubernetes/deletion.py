"""The rules of DELETE: grace, preconditions, finalizers (``rest.BeforeDelete`` and the Pod strategy upstream)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from local.kubernetes.errors import Object, bad_request, conflict
from local.kubernetes.metadata import timestamp
from local.kubernetes.resources import PODS, Resource
from local.kubernetes.storage import Key, Record, Store

_TERMINAL = ("Succeeded", "Failed")


def options(query: Mapping[str, str], body: Any) -> Object:
    """DeleteOptions of a request; the query counts where there is no body."""
    if body is None:
        text = query.get("gracePeriodSeconds")
        return {} if text is None else {"gracePeriodSeconds": _seconds(text)}
    if not isinstance(body, dict):
        raise bad_request("the body is no DeleteOptions")
    grace = body.get("gracePeriodSeconds")
    if grace is not None and (not isinstance(grace, int) or isinstance(grace, bool)):
        raise bad_request("cannot decode gracePeriodSeconds as an integer")
    return body


def _seconds(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise bad_request("cannot decode gracePeriodSeconds as an integer") from None


def require_preconditions(resource: Resource, record: Record, wanted: Object) -> None:
    """409 when uid or resourceVersion is not the one that the caller saw."""
    metadata = record.object["metadata"]
    preconditions = wanted.get("preconditions") or {}
    for field, label in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        value = preconditions.get(field)
        if value is not None and value != metadata[field]:
            why = f"Precondition failed: {label} in precondition: {value}, {label} in object meta: {metadata[field]}"
            raise conflict(resource.qualified, metadata["name"], why)


def grace_of(resource: Resource, obj: Object, wanted: Object) -> int:
    """Seconds that the object stays; 0 for everything but a Pod that runs on a Node."""
    if resource is not PODS:
        return 0
    spec = obj["spec"]
    grace = wanted.get("gracePeriodSeconds")
    if grace is None:
        grace = spec.get("terminationGracePeriodSeconds", 30)
    if not spec.get("nodeName") or (obj.get("status") or {}).get("phase") in _TERMINAL:
        return 0
    return 1 if grace < 0 else int(grace)


def delete(store: Store, resource: Resource, key: Key, wanted: Object, now: datetime) -> tuple[Record, bool]:
    """Delete one object; the record it left (or still has) and whether it is gone. The caller holds the lock."""
    record = store.get(resource, key)
    if record is None:
        raise KeyError(key)
    require_preconditions(resource, record, wanted)
    metadata = record.object["metadata"]
    grace = grace_of(resource, record.object, wanted)
    held = bool(metadata.get("finalizers"))
    if (
        "deletionTimestamp" in metadata
        and grace >= (metadata.get("deletionGracePeriodSeconds") or 0)
        and (grace or held)
    ):
        return record, False
    if resource is not PODS and not held:
        return store.remove(resource, key, record.object), True
    # A Pod is marked even when it goes in the same call: a watch sees MODIFIED, then DELETED.
    marked = store.write(resource, key, {**record.object, "metadata": _marked(metadata, grace, now)})
    if grace or held:
        return marked, False
    return store.remove(resource, key, marked.object), True


def _marked(metadata: Object, grace: int, now: datetime) -> Object:
    marked = {
        **metadata,
        "deletionTimestamp": timestamp(now + timedelta(seconds=grace)),
        "deletionGracePeriodSeconds": grace,
    }
    if "generation" in metadata and "deletionTimestamp" not in metadata:
        marked["generation"] = metadata["generation"] + 1
    return marked


def finished(obj: Object) -> bool:
    """Whether a change left a deleted object with nothing that holds it: no finalizer and no grace."""
    metadata = obj["metadata"]
    held = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds")
    return "deletionTimestamp" in metadata and not held
