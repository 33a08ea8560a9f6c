"""Would the default scheduler bind this Pod to this Node? Asked before anything is bought.

The scheduler's filters that can refuse a virtual Node, restated over the Node as it stands:
https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/ . What cannot be decided
from the Pod and the Node alone (required Pod affinity) counts as a problem: a paid instance must not
wait beside a Pod that may never bind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from nebula.kubernetes.pod import Pod
from nebula.kubernetes.quantity import InvalidQuantityError, parse_quantity
from nebula.kubernetes.release import released_tolerations

_OS_HINT: Final = "the virtual Node carries no os or arch label, so that DaemonSets stay off it"
_OS_LABELS: Final = frozenset({"kubernetes.io/os", "kubernetes.io/arch"})


def pod_problems(pod: Pod, node: Mapping[str, Any]) -> tuple[str, ...]:
    """One line per reason why the Pod could not be bound to the Node; empty when it could."""
    labels = (node.get("metadata", {}).get("labels")) or {}
    return tuple(
        problem
        for check in (_selector, _affinity, _pod_affinity, _spread, _taints, _resources)
        for problem in check(pod, node, labels)
    )


def _selector(pod: Pod, _node: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[str]:
    for key, value in (pod.spec.get("nodeSelector") or {}).items():
        if labels.get(key) != value:
            hint = f" ({_OS_HINT})" if key in _OS_LABELS else ""
            yield f"spec.nodeSelector: {key}={value} is not a label of the Node{hint}"


def _affinity(pod: Pod, node: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[str]:
    node_affinity = _of(pod, "nodeAffinity")
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return
    terms = required.get("nodeSelectorTerms") or []
    if not any(_term_matches(term, node, labels) for term in terms):
        yield "spec.affinity.nodeAffinity: no required term matches the Node"


def _term_matches(term: Mapping[str, Any], node: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    name = {"metadata.name": node.get("metadata", {}).get("name")}
    return all(_matches(e, labels) for e in expressions) and all(_matches(f, name) for f in fields)


def _matches(requirement: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    value, wanted = labels.get(requirement.get("key", "")), requirement.get("values") or []
    match requirement.get("operator"):
        case "In":
            return value in wanted
        case "NotIn":
            return value not in wanted
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            return _compares(operator, value, wanted)
        case _:
            return False


def _compares(operator: str, value: object, wanted: list[str]) -> bool:
    try:
        held, bound = int(str(value)), int(wanted[0])
    except (ValueError, IndexError):
        return False
    return held > bound if operator == "Gt" else held < bound


def _pod_affinity(pod: Pod, _node: Mapping[str, Any], _labels: Mapping[str, str]) -> Iterator[str]:
    for kind in ("podAffinity", "podAntiAffinity"):
        if _of(pod, kind).get("requiredDuringSchedulingIgnoredDuringExecution"):
            yield f"spec.affinity.{kind}: required terms cannot be met, all Pods of a provider share one Node"


def _spread(pod: Pod, _node: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[str]:
    """Only the Pod's own Node is counted (nodeAffinityPolicy Honor), so any label it has is even."""
    for constraint in pod.spec.get("topologySpreadConstraints") or []:
        if constraint.get("whenUnsatisfiable", "DoNotSchedule") != "DoNotSchedule":
            continue
        key = constraint.get("topologyKey", "")
        if key not in labels:
            yield f"spec.topologySpreadConstraints: the Node has no label {key}"
        elif constraint.get("nodeAffinityPolicy") == "Ignore" or (constraint.get("minDomains") or 1) > 1:
            yield f"spec.topologySpreadConstraints: {key} is spread over Nodes other than the provider's"


def _taints(pod: Pod, node: Mapping[str, Any], _labels: Mapping[str, str]) -> Iterator[str]:
    """With the tolerations that the release adds; the ones we wait out are among them."""
    tolerations = released_tolerations(pod)
    spec = node.get("spec") or {}
    taints = list(spec.get("taints") or [])
    if spec.get("unschedulable") and not any(t.get("key") == "node.kubernetes.io/unschedulable" for t in taints):
        taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    for taint in taints:
        if taint.get("effect") == "PreferNoSchedule" or any(_tolerates(t, taint) for t in tolerations):
            continue
        yield f"the Node has taint {taint.get('key')}:{taint.get('effect')}, which the Pod does not tolerate"


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    exists = toleration.get("operator") == "Exists"
    if not toleration.get("key"):
        return exists
    if toleration["key"] != taint.get("key"):
        return False
    return exists or (toleration.get("value") or "") == (taint.get("value") or "")


def _resources(pod: Pod, node: Mapping[str, Any], _labels: Mapping[str, str]) -> Iterator[str]:
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    for key in sorted(requested_resources(pod)):
        if key not in allocatable:
            yield f"resource {key} is not offered by the Node"
        elif any(_exceeds(container, key, allocatable[key]) for container in pod.containers):
            yield f"resource {key} is more than the Node's {allocatable[key]}"


def _exceeds(container: Mapping[str, Any], key: str, allocatable: object) -> bool:
    """Whether one container alone asks for more than there is. Others' Pods are not counted: it is a virtual Node."""
    resources = container.get("resources") or {}
    asked = (resources.get("requests") or {}).get(key, (resources.get("limits") or {}).get(key, "0"))
    try:
        return parse_quantity(asked) > parse_quantity(allocatable)
    except InvalidQuantityError:
        return False


def requested_resources(pod: Pod) -> set[str]:
    """Names of every resource that a container requests or limits."""
    found: set[str] = set()
    for container in pod.containers:
        resources = container.get("resources") or {}
        found |= set(resources.get("requests") or {}) | set(resources.get("limits") or {})
    return found


def _of(pod: Pod, kind: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (pod.spec.get("affinity") or {}).get(kind) or {}
    return found
