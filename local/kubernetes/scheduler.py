"""A stand-in for the default scheduler: binds an ungated Pod to the first Node that suits it.

Filters as upstream: Ready, taints, nodeSelector, required node affinity, and requests that fit what the Node
lists and other Pods left. What does not fit anywhere gets ``PodScheduled=False, Unschedulable`` and waits until
a Node changes or a Pod ends.
"""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from typing import Any

from nebula.clock import Clock
from nebula.kubernetes.quantity import InvalidQuantityError, parse_quantity

from local.kubernetes import kind_rules, objects
from local.kubernetes.errors import Object
from local.kubernetes.metadata import timestamp
from local.kubernetes.resources import NODES, PODS
from local.kubernetes.storage import Change, Key, Store

_TERMINAL = ("Succeeded", "Failed")
Amounts = dict[str, Decimal]


class Scheduler:
    """Listens to the store and binds when ``run`` is called. All under the store's lock."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._pending: dict[Key, None] = {}
        self._waiting: dict[Key, None] = {}
        self._used: dict[str, Amounts] = defaultdict(lambda: defaultdict(Decimal))
        self._held: dict[str, tuple[str, Amounts]] = {}
        store.listeners.append(self._note)

    def run(self) -> None:
        """Bind every pending Pod that some Node suits."""
        while self._pending:
            pending, self._pending = list(self._pending), {}
            for key in pending:
                self._schedule(key)

    def _note(self, change: Change) -> None:
        if change.resource is NODES:
            self._wake()
        if change.resource is not PODS:
            return
        pod, uid = change.record.object, change.record.object["metadata"]["uid"]
        ended = change.type == "DELETED" or (pod.get("status") or {}).get("phase") in _TERMINAL
        node = pod["spec"].get("nodeName")
        if ended:
            self._free(uid)
            self._waiting.pop(change.key, None)
        elif node and uid not in self._held:
            self._hold(uid, node, pod)
        elif not node and not pod["spec"].get("schedulingGates") and change.key not in self._waiting:
            self._pending[change.key] = None

    def _wake(self) -> None:
        self._pending |= self._waiting
        self._waiting = {}

    def _hold(self, uid: str, node: str, pod: Object) -> None:
        amounts = _requests(pod)
        self._held[uid] = (node, amounts)
        for name, amount in amounts.items():
            self._used[node][name] += amount

    def _free(self, uid: str) -> None:
        node, amounts = self._held.pop(uid, ("", {}))
        for name, amount in amounts.items():
            self._used[node][name] -= amount
        if amounts and self._waiting:
            self._wake()

    def _schedule(self, key: Key) -> None:
        record = self._store.get(PODS, key)
        if record is None:
            return
        pod = record.object
        spec = pod["spec"]
        if spec.get("nodeName") or spec.get("schedulingGates") or "deletionTimestamp" in pod["metadata"]:
            return
        if spec.get("schedulerName", "default-scheduler") != "default-scheduler":
            return
        nodes = [found.object for found in self._store.records(NODES)]
        problems = []
        for node in nodes:
            problem = unsuitable(pod, node, self._used.get(node["metadata"]["name"], {}))
            if problem is None:
                objects.assign(self._store, key, node["metadata"]["name"], self._clock.now())
                return
            problems.append(problem)
        self._waiting[key] = None
        self._refuse(key, pod, problems)

    def _refuse(self, key: Key, pod: Object, problems: list[str]) -> None:
        counted = ", ".join(f"{problems.count(text)} {text}" for text in sorted(set(problems)))
        message = f"0/{len(problems)} nodes are available: {counted or 'no nodes'}."
        conditions = (pod.get("status") or {}).get("conditions") or []
        if any(item.get("reason") == "Unschedulable" and item.get("message") == message for item in conditions):
            return
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": timestamp(self._clock.now()),
            "reason": "Unschedulable",
            "message": message,
        }
        status = objects.with_condition(pod.get("status") or {}, condition)
        self._store.write(PODS, key, {**pod, "status": status})


def unsuitable(pod: Object, node: Object, used: Amounts) -> str | None:
    """Why a Node does not suit a Pod, in the scheduler's words; None when it does."""
    spec = pod["spec"]
    labels = node["metadata"].get("labels") or {}
    if not kind_rules.ready(node):
        return "node(s) were not ready"
    taints = (node.get("spec") or {}).get("taints") or []
    for taint in taints:
        if taint["effect"] != "PreferNoSchedule" and not _tolerated(taint, spec.get("tolerations") or []):
            return f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"
    selector = spec.get("nodeSelector") or {}
    terms = _required_terms(spec)
    if any(labels.get(key) != value for key, value in selector.items()) or (
        terms is not None and not any(_term(term, node, labels) for term in terms)
    ):
        return "node(s) didn't match Pod's node affinity/selector"
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    for name, amount in _requests(pod).items():
        if amount > _quantity(allocatable.get(name, 0)) - used.get(name, Decimal()):
            return "Too many pods" if name == "pods" else f"Insufficient {name}"
    return None


def _tolerated(taint: Object, tolerations: list[Object]) -> bool:
    for toleration in tolerations:
        key, effect = toleration.get("key") or "", toleration.get("effect") or ""
        if (key and key != taint["key"]) or (effect and effect != taint["effect"]):
            continue
        if toleration.get("operator") == "Exists" or (toleration.get("value") or "") == (taint.get("value") or ""):
            return True
    return False


def _required_terms(spec: Object) -> list[Object] | None:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return None if required is None else required.get("nodeSelectorTerms") or []


def _term(term: Object, node: Object, labels: dict[str, str]) -> bool:
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    names = {"metadata.name": node["metadata"]["name"]}
    if not expressions and not fields:
        return False
    return all(_expression(item, labels) for item in expressions) and all(_expression(item, names) for item in fields)


def _expression(item: Object, values: dict[str, str]) -> bool:
    value, listed, operator = values.get(item["key"]), item.get("values") or [], item["operator"]
    if operator in ("Exists", "DoesNotExist"):
        return (value is not None) is (operator == "Exists")
    if operator in ("In", "NotIn"):
        return (value in listed) is (operator == "In")
    if value is None or not value.lstrip("-").isdigit():
        return False
    return int(value) > int(listed[0]) if operator == "Gt" else int(value) < int(listed[0])


def _requests(pod: Object) -> Amounts:
    """What a Pod asks for: the sum of its containers, at least its largest init container, and one place."""
    total: Amounts = defaultdict(Decimal)
    for container in pod["spec"]["containers"]:
        for name, text in _listed(container):
            total[name] += _quantity(text)
    for container in pod["spec"].get("initContainers") or []:
        for name, text in _listed(container):
            total[name] = max(total[name], _quantity(text))
    total["pods"] = Decimal(1)
    return dict(total)


def _listed(container: Object) -> list[tuple[str, Any]]:
    resources = container.get("resources") or {}
    return list({**(resources.get("limits") or {}), **(resources.get("requests") or {})}.items())


def _quantity(text: Any) -> Decimal:
    try:
        return parse_quantity(text)
    except InvalidQuantityError:
        return Decimal("Infinity")
