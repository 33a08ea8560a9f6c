"""Create, replace, patch, delete and bind one object in the store. Callers hold the store's lock."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from local.kubernetes import deletion, kind_rules, metadata, pod_defaults, pod_rules
from local.kubernetes.errors import UNDECODABLE, ApiError, Cause, Object, bad_request, conflict, invalid, not_found
from local.kubernetes.patching import json_patch, merge_patch, strategic_merge
from local.kubernetes.pod_defaults import Admission
from local.kubernetes.resources import NAMESPACES, NODES, PODS, Resource, Route
from local.kubernetes.storage import Key, Record, Store


def require(store: Store, route: Route) -> Record:
    """The object that a route names; 404."""
    record = store.get(route.resource, (route.namespace, route.name))
    if record is None:
        raise not_found(route.resource.qualified, route.name)
    return record


def create(
    store: Store, resource: Resource, namespace: str, obj: Object, now: datetime, admission: Admission
) -> Record:
    """Create an object; ``obj`` is not changed."""
    obj = copy.deepcopy(obj)
    name = metadata.at_create(resource, obj, namespace, now, store.chance)
    if resource.namespaced:
        _require_namespace(store, namespace, name, resource)
    if resource is PODS:
        pod_rules.require_shape(obj)
        pod_defaults.fill(obj, admission, f"{store.chance.getrandbits(20):05x}")
        pod_rules.at_create(obj)
        metadata.drop_empty(obj["spec"])
    elif resource is NODES:
        kind_rules.node_admission(obj)
    kind_rules.check(resource, None, obj)
    if store.get(resource, (namespace, name)) is not None:
        message = f'{resource.qualified} "{name}" already exists'
        raise ApiError(409, message, reason="AlreadyExists", details={"name": name, "kind": resource.plural})
    return store.write(resource, (namespace, name), obj)


def _require_namespace(store: Store, namespace: str, name: str, resource: Resource) -> None:
    found = store.get(NAMESPACES, ("", namespace))
    if found is None:
        raise not_found("namespaces", namespace)
    if "deletionTimestamp" in found.object["metadata"]:
        message = f'{resource.qualified} "{name}" is forbidden: namespace {namespace} is being terminated'
        raise ApiError(403, message, causes=[Cause("metadata.namespace", message, "NamespaceTerminating")])


def replace(store: Store, route: Route, obj: Object, admission: Admission) -> Record:
    """PUT: the whole object, or its status."""
    old = require(store, route)
    metadata.require_envelope(route.resource, obj, route.namespace)
    return _store_change(store, route, old, copy.deepcopy(obj), admission, put=True)


def patch(store: Store, route: Route, content_type: str, body: Any, admission: Admission) -> Record:
    """PATCH by its content type: 415 for one that the kind does not take, 400 for a body that is no patch."""
    old = require(store, route)
    if content_type == "application/json-patch+json":
        full = {"kind": route.resource.kind, "apiVersion": route.resource.api_version, **old.object}
        changed = json_patch(full, body)
    elif not isinstance(body, dict):
        raise bad_request("the patch is no object")
    elif content_type == "application/merge-patch+json":
        changed = merge_patch(old.object, body)
    elif content_type == "application/strategic-merge-patch+json" and route.resource.strategic:
        changed = strategic_merge(old.object, body)
    else:
        raise ApiError(415, "the body of the request was in an unknown format")
    try:
        return _store_change(store, route, old, changed, admission, put=False)
    except ApiError as error:
        if error.reason != UNDECODABLE:
            raise
        # What cannot be decoded is a bad request in a body and an invalid value in a patch.
        raise invalid("", "", Cause("patch", error.message)) from None


def _store_change(store: Store, route: Route, old: Record, new: Object, admission: Admission, *, put: bool) -> Record:
    """Apply the rules of an update; a change that changes nothing writes nothing."""
    resource, before = route.resource, old.object
    new = dict(new)
    metadata.at_update(resource, before, new, put=put)
    if route.subresource == "status":
        _keep_all_but_status(resource, before, new)
        if resource is PODS:
            new["status"] = dict(new.get("status") or {})
            pod_rules.at_status(before, new)
    elif resource.status:
        _restore(new, before, "status")
    if resource is PODS and not route.subresource:
        pod_rules.require_shape(new)
        new["spec"] = dict(new["spec"])
        metadata.drop_empty(new["spec"])
        pod_defaults.refill(new["spec"], admission)
        pod_rules.at_update(before, new)
    kind_rules.check(resource, before, new)
    metadata.count_change(resource, before, new)
    new = {key: value for key, value in new.items() if value is not None}
    if new == before:
        return old
    key = (route.namespace, route.name)
    if deletion.finished(new):
        return store.remove(resource, key, new)
    return store.write(resource, key, new)


def _restore(new: Object, before: Object, field: str) -> None:
    if field in before:
        new[field] = before[field]
    else:
        new.pop(field, None)


def _keep_all_but_status(resource: Resource, before: Object, new: Object) -> None:
    """A write of status keeps the spec; a custom resource's keeps its metadata too."""
    for field in {*before, *new} - {"status", "metadata"}:
        _restore(new, before, field)
    if not resource.strategic:
        new["metadata"] = dict(before["metadata"])
    elif "ownerReferences" in before["metadata"]:
        new["metadata"]["ownerReferences"] = before["metadata"]["ownerReferences"]


def delete(store: Store, route: Route, query: Mapping[str, str], body: Any, now: datetime) -> tuple[Record, bool]:
    """DELETE one object; a namespace only begins to terminate."""
    record = require(store, route)
    wanted = deletion.options(query, body)
    key: Key = (route.namespace, route.name)
    if route.resource is not NAMESPACES:
        return deletion.delete(store, route.resource, key, wanted, now)
    deletion.require_preconditions(route.resource, record, wanted)
    if "deletionTimestamp" in record.object["metadata"]:
        return record, False
    marked = {**record.object["metadata"], "deletionTimestamp": metadata.timestamp(now)}
    terminating = {**record.object, "metadata": marked, "status": {"phase": "Terminating"}}
    return store.write(NAMESPACES, key, terminating), False


def bind(store: Store, route: Route, binding: Object, now: datetime) -> None:
    """The binding subresource: what a scheduler calls. 409 when bound or being deleted, 400 when gated."""
    target = (binding.get("target") or {}).get("name")
    if not isinstance(target, str) or not target:
        raise invalid("Binding", route.name, Cause("target.name", "is required", "FieldValueRequired"))
    assign(store, (route.namespace, route.name), target, now)


def assign(store: Store, key: Key, node: str, now: datetime) -> Record:
    """Set the Node and PodScheduled=True in one write, as a binding does."""
    record = store.get(PODS, key)
    if record is None:
        raise not_found("pods", key[1])
    pod = record.object
    if pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"]:
        raise conflict("pods/binding", key[1], f"pod {key[1]} is already assigned or is being deleted")
    if pod["spec"].get("schedulingGates"):
        raise conflict("pods/binding", key[1], f"pod {key[1]} has non-empty .spec.schedulingGates")
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
    status = with_condition(pod.get("status") or {}, {**scheduled, "lastTransitionTime": metadata.timestamp(now)})
    spec = {**pod["spec"], "nodeName": node}
    return store.write(PODS, key, {**pod, "spec": spec, "status": status})


def with_condition(status: Object, condition: Object) -> Object:
    """A status in which one condition is set or replaced."""
    others = [item for item in status.get("conditions") or [] if item.get("type") != condition["type"]]
    return {**status, "conditions": [*others, condition]}
