"""What an API server refuses of a Pod: at creation, at a change of spec, at a write of status.

Sources: validation in https://github.com/kubernetes/kubernetes ``pkg/apis/core/validation``; scheduling gates in
KEP 3521 and the directives that may change while gated in KEP 3838.
"""

from __future__ import annotations

import ipaddress
from typing import Any

from local.kubernetes.errors import Cause, Object, invalid, undecodable
from local.kubernetes.metadata import is_qualified, is_subdomain, require_time

_RESTART = ("Always", "OnFailure", "Never")
_NATIVE = frozenset({"cpu", "memory", "ephemeral-storage"})
_FORBIDDEN = "FieldValueForbidden"
_ONLY = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def _refuse(pod: Object, *causes: Cause) -> None:
    if causes:
        raise invalid("Pod", pod["metadata"]["name"], *causes)


def require_shape(pod: Object) -> None:
    """400 for what cannot be decoded: wrong JSON types of the fields that the emulator itself reads."""
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        raise undecodable("spec must be an object")
    for field in ("containers", "initContainers", "tolerations", "schedulingGates", "volumes", "imagePullSecrets"):
        value = spec.get(field)
        if value is not None and (not isinstance(value, list) or any(not isinstance(item, dict) for item in value)):
            raise undecodable(f"cannot decode spec.{field} as a list of objects")
    selector = spec.get("nodeSelector") or {}
    if not isinstance(selector, dict) or any(not isinstance(value, str) for value in selector.values()):
        raise undecodable("cannot decode spec.nodeSelector as a map of strings")
    for container in [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]:
        _require_container(container)


def _require_container(container: Object) -> None:
    for entry in container.get("env") or []:
        if not isinstance(entry, dict) or not isinstance(entry.get("value", ""), str):
            raise undecodable("cannot decode env as a list of names and string values")
    for field in ("command", "args"):
        value = container.get(field) or []
        if not isinstance(value, list) or any(not isinstance(item, str) for item in value):
            raise undecodable(f"cannot decode {field} as a list of strings")


def at_create(pod: Object) -> None:
    """422 for a Pod that may not be created."""
    spec = pod["spec"]
    causes: list[Cause] = []
    containers = spec.get("containers") or []
    if not containers:
        causes.append(Cause("spec.containers", "at least one container is required", "FieldValueRequired"))
    names = [container.get("name") for container in [*containers, *(spec.get("initContainers") or [])]]
    if len(set(names)) < len(names):
        causes.append(Cause("spec.containers", "duplicate container name", "FieldValueDuplicate"))
    if not all(is_subdomain(name) and "." not in str(name) and len(str(name)) <= 63 for name in names):
        causes.append(Cause("spec.containers[*].name", "a lowercase RFC 1123 label is required"))
    if any(not container.get("image") for container in containers):
        causes.append(Cause("spec.containers[*].image", "an image is required", "FieldValueRequired"))
    if spec["restartPolicy"] not in _RESTART:
        causes.append(Cause("spec.restartPolicy", "unsupported value", "FieldValueNotSupported"))
    gates = spec.get("schedulingGates") or []
    if gates and spec.get("nodeName"):
        causes.append(Cause("spec.nodeName", "cannot be set until all schedulingGates have been cleared", _FORBIDDEN))
    if not all(is_qualified(gate.get("name")) for gate in gates):
        causes.append(Cause("spec.schedulingGates[*].name", "a qualified name is required"))
    for container in containers:
        causes += _extended_resources(container)
    _refuse(pod, *causes)


def _extended_resources(container: Object) -> list[Cause]:
    resources = container.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    causes = []
    for name in sorted({*limits, *requests}):
        if name in _NATIVE or "/" not in name:
            continue
        if not str(requests.get(name, limits.get(name))).isdigit():
            causes.append(Cause(f"spec.containers[*].resources.requests[{name}]", "must be an integer"))
        if name not in limits or str(limits[name]) != str(requests.get(name, limits[name])):
            causes.append(Cause(f"spec.containers[*].resources.requests[{name}]", f"must be equal to {name} limit"))
    return causes


def at_update(old: Object, new: Object) -> None:
    """422 for a change of spec that a Pod does not allow."""
    before, after = old["spec"], new["spec"]
    if before == after:
        return
    causes = [*_gates(before, after), *_tolerations(before, after), *_selector(before, after)]
    causes += _deadline(before, after)
    if _rest(before) != _rest(after):
        causes.append(Cause("spec", _ONLY, _FORBIDDEN))
    _refuse(new, *causes)


def _rest(spec: Object) -> Object:
    """The spec without the fields that have rules of their own."""
    own = ("schedulingGates", "tolerations", "nodeSelector", "activeDeadlineSeconds", "affinity")
    rest = {key: value for key, value in spec.items() if key not in own and value not in (None, [], {})}
    for field in ("containers", "initContainers"):
        if field in rest:
            rest[field] = [{**container, "image": ""} for container in rest[field]]
    return rest


def _names(gates: Any) -> set[str]:
    return {gate.get("name") for gate in gates or []}


def _gates(before: Object, after: Object) -> list[Cause]:
    if _names(after.get("schedulingGates")) <= _names(before.get("schedulingGates")):
        return []
    return [Cause("spec.schedulingGates", "only deletion is allowed, but found new scheduling gate", _FORBIDDEN)]


def _identity(toleration: Object) -> tuple[Any, ...]:
    operator = toleration.get("operator") or "Equal"
    return (
        toleration.get("key") or "",
        operator,
        toleration.get("value") or "",
        toleration.get("effect") or "",
    )


def _tolerations(before: Object, after: Object) -> list[Cause]:
    kept = {_identity(toleration) for toleration in after.get("tolerations") or []}
    missing = [t for t in before.get("tolerations") or [] if _identity(t) not in kept]
    causes = []
    if missing:
        message = "existing toleration can not be modified except its tolerationSeconds"
        causes.append(Cause("spec.tolerations", message, _FORBIDDEN))
    for toleration in after.get("tolerations") or []:
        key, operator, _, effect = _identity(toleration)
        if (not key and operator != "Exists") or (operator == "Exists" and toleration.get("value")):
            causes.append(Cause("spec.tolerations[*].operator", "key, operator and value do not fit"))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            causes.append(Cause("spec.tolerations[*].effect", "must be NoExecute when tolerationSeconds is set"))
    return causes


def _selector(before: Object, after: Object) -> list[Cause]:
    gated = bool(before.get("schedulingGates"))
    old, new = before.get("nodeSelector") or {}, after.get("nodeSelector") or {}
    causes = []
    if old != new:
        if not gated:
            causes.append(Cause("spec", _ONLY, _FORBIDDEN))
        elif any(new.get(key) != value for key, value in old.items()):
            causes.append(Cause("spec.nodeSelector", "only additions to spec.nodeSelector are allowed"))
    affinity_before, affinity_after = before.get("affinity") or {}, after.get("affinity") or {}
    if affinity_before != affinity_after and (not gated or not _only_added(affinity_before, affinity_after)):
        causes.append(Cause("spec.affinity", "field is immutable", _FORBIDDEN))
    return causes


def _only_added(before: Object, after: Object) -> bool:
    if any(before.get(key) != after.get(key) for key in ("podAffinity", "podAntiAffinity")):
        return False
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    old = ((before.get("nodeAffinity") or {}).get(required) or {}).get("nodeSelectorTerms")
    new = ((after.get("nodeAffinity") or {}).get(required) or {}).get("nodeSelectorTerms")
    if old is None:
        return True
    if new is None or len(new) != len(old):
        return False
    return all(
        all(item in (term.get(field) or []) for item in previous.get(field) or [])
        for previous, term in zip(old, new, strict=True)
        for field in ("matchExpressions", "matchFields")
    )


def _deadline(before: Object, after: Object) -> list[Cause]:
    old, new = before.get("activeDeadlineSeconds"), after.get("activeDeadlineSeconds")
    if old == new or (isinstance(new, int) and new > 0 and (old is None or new <= old)):
        return []
    return [Cause("spec.activeDeadlineSeconds", "must be less than or equal to previous value")]


def at_status(old: Object, new: Object) -> None:
    """422 for a status that may not be written. Phases may move in any direction: nobody checks them."""
    status = new.get("status")
    if not isinstance(status, dict):
        raise undecodable("status must be an object")
    before = old.get("status") or {}
    require_times(status)
    causes = _addresses(status, "podIPs", "podIP") + _addresses(status, "hostIPs", "hostIP")
    if not all(is_qualified(condition.get("type")) for condition in status.get("conditions") or []):
        causes.append(Cause("status.conditions[*].type", "a qualified name is required"))
    if status.get("qosClass", before.get("qosClass")) != before.get("qosClass"):
        causes.append(Cause("status.qosClass", "field is immutable"))
    for field in ("containerStatuses", "initContainerStatuses"):
        causes += _containers(old["spec"], before.get(field) or [], status.get(field) or [], f"status.{field}")
    status.setdefault("qosClass", before.get("qosClass"))
    if not status.get("observedGeneration") and before.get("observedGeneration"):
        status["observedGeneration"] = before["observedGeneration"]
    _refuse(new, *causes)


def require_times(status: Object) -> None:
    """400 for a time that cannot be decoded; 400 too for a condition or container status that is no object."""
    require_time(status.get("startTime"), "status.startTime")
    for condition in _objects(status, "conditions"):
        for field in ("lastTransitionTime", "lastProbeTime", "lastHeartbeatTime"):
            require_time(condition.get(field), f"status.conditions[*].{field}")
    for item in [*_objects(status, "containerStatuses"), *_objects(status, "initContainerStatuses")]:
        for state in (item.get("state") or {}).values():
            require_time((state or {}).get("startedAt"), "state.startedAt")
            require_time((state or {}).get("finishedAt"), "state.finishedAt")


def _objects(status: Object, field: str) -> list[Object]:
    items = status.get(field) or []
    if not isinstance(items, list) or any(not isinstance(item, dict) for item in items):
        raise undecodable(f"cannot decode status.{field} as a list of objects")
    return items


def _addresses(status: Object, plural: str, single: str) -> list[Cause]:
    """One literal address per family. Where the lone address differs from the first of the list, it wins."""
    lone, listed = status.get(single), _objects(status, plural)
    if lone and (not listed or listed[0].get("ip") != lone):
        status[plural] = listed = [{"ip": lone}]
    families = []
    for item in listed:
        try:
            families.append(ipaddress.ip_address(item.get("ip") or "").version)
        except ValueError:
            return [Cause(f"status.{plural}[*]", "must be a valid IP address")]
    if len(set(families)) < len(families):
        return [Cause(f"status.{plural}", "may specify no more than one IP for each IP family")]
    if listed:
        status[single] = listed[0]["ip"]
    return []


def _containers(spec: Object, before: list[Object], after: list[Object], field: str) -> list[Cause]:
    causes = []
    previous = {item.get("name"): item for item in before}
    for item in after:
        state = item.get("state") or {}
        if len([key for key, value in state.items() if value is not None]) > 1:
            causes.append(Cause(f"{field}[*].state", "may not specify more than 1 state", _FORBIDDEN))
        ended = ((previous.get(item.get("name")) or {}).get("state") or {}).get("terminated")
        if not ended or state.get("terminated") or spec.get("restartPolicy") == "Always":
            continue
        if spec.get("restartPolicy") == "Never" or ended.get("exitCode", 0) == 0:
            causes.append(Cause(f"{field}[*].state", "may not be transitioned to non-terminated state", _FORBIDDEN))
    return causes
