"""Rules of the kinds beside Pods: Nodes, Leases, Events, Secrets, ConfigMaps."""

from __future__ import annotations

import base64
import binascii
import json
import re

from local.kubernetes.errors import Cause, Object, invalid, undecodable
from local.kubernetes.metadata import require_time
from local.kubernetes.pod_rules import require_times
from local.kubernetes.resources import CONFIG_MAPS, EVENTS, LEASES, NODES, SECRETS, Resource

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
_MICRO_TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)$")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_MAX_DATA = 1024 * 1024


def check(resource: Resource, old: Object | None, obj: Object) -> None:
    """Check and normalise one object that is created (``old`` is None) or changed; ``obj`` may be changed."""
    if resource is NODES:
        _node(old, obj)
    elif resource is LEASES:
        _lease(obj)
    elif resource is EVENTS:
        _event(obj)
    elif resource is SECRETS:
        _secret(old, obj)
    elif resource is CONFIG_MAPS:
        _config_map(obj)


def node_admission(node: Object) -> None:
    """TaintNodesByCondition: every new Node begins as not ready."""
    spec = dict(node.get("spec") or {})
    taints = list(spec.get("taints") or [])
    if not any(taint.get("key") == NOT_READY for taint in taints):
        taints.append({"key": NOT_READY, "effect": "NoSchedule"})
    node["spec"] = {**spec, "taints": taints}


def _node(old: Object | None, node: Object) -> None:
    name = node["metadata"]["name"]
    spec = node.setdefault("spec", {})
    status = node.setdefault("status", {})
    if not isinstance(spec, dict) or not isinstance(status, dict):
        raise undecodable("spec and status must be objects")
    for taint in spec.get("taints") or []:
        if taint.get("effect") not in _EFFECTS or not taint.get("key"):
            raise invalid("Node", name, Cause("spec.taints[*].effect", "unsupported value", "FieldValueNotSupported"))
    before = ((old or {}).get("spec") or {}).get("providerID")
    if before and spec.get("providerID") != before:
        raise invalid("Node", name, Cause("spec.providerID", "node updates may not change it", "FieldValueForbidden"))
    require_times(status)
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def _lease(lease: Object) -> None:
    spec = lease.setdefault("spec", {})
    if not isinstance(spec, dict):
        raise undecodable("spec must be an object")
    for field in ("renewTime", "acquireTime"):
        value = spec.get(field)
        if value is not None and (not isinstance(value, str) or not _MICRO_TIME.match(value)):
            raise undecodable(f"cannot decode spec.{field} as a time with six fraction digits")
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and (not isinstance(seconds, int) or seconds <= 0):
        cause = Cause("spec.leaseDurationSeconds", "must be greater than 0")
        raise invalid("Lease", lease["metadata"]["name"], cause)


def _event(event: Object) -> None:
    involved = event.get("involvedObject")
    if not isinstance(involved, dict):
        raise undecodable("involvedObject must be an object")
    name, namespace = event["metadata"]["name"], event["metadata"]["namespace"]
    about = involved.get("namespace") or "default"
    if about != namespace:
        raise invalid("Event", name, Cause("involvedObject.namespace", "does not match event.namespace"))
    for field in ("firstTimestamp", "lastTimestamp"):
        require_time(event.get(field), field)
    if not isinstance(event.get("count", 1), int):
        raise undecodable("cannot decode count as an integer")


def _secret(old: Object | None, secret: Object) -> None:
    name = secret["metadata"]["name"]
    data = dict(secret.get("data") or {})
    for key, text in (secret.pop("stringData", None) or {}).items():
        data[key] = base64.b64encode(text.encode()).decode()
    for value in data.values():
        try:
            base64.b64decode(value, validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise undecodable("cannot decode data as base64") from None
    secret["data"] = data
    kind = secret.setdefault("type", "Opaque")
    if old is not None and old["type"] != kind:
        raise invalid("Secret", name, Cause("type", "field is immutable"))
    if sum(map(len, data.values())) > _MAX_DATA * 4 // 3:
        raise invalid("Secret", name, Cause("data", f"must have at most {_MAX_DATA} bytes", "FieldValueTooLong"))
    wanted = {"kubernetes.io/dockerconfigjson": ".dockerconfigjson", "kubernetes.io/dockercfg": ".dockercfg"}.get(kind)
    if wanted is None:
        return
    if wanted not in data:
        raise invalid("Secret", name, Cause(f"data[{wanted}]", "is required", "FieldValueRequired"))
    try:
        json.loads(base64.b64decode(data[wanted]))
    except ValueError:
        raise invalid("Secret", name, Cause(f"data[{wanted}]", "must be JSON")) from None


def _config_map(config_map: Object) -> None:
    data = config_map.get("data") or {}
    if not isinstance(data, dict) or any(not isinstance(value, str) for value in data.values()):
        raise undecodable("cannot decode data as a map of strings")


def ready(node: Object) -> bool:
    """Whether the Node's Ready condition is True."""
    conditions = (node.get("status") or {}).get("conditions") or []
    return any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions)
