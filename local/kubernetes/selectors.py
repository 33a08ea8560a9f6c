"""Label and field selectors, read once per request into a predicate."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from local.kubernetes.errors import Object, bad_request
from local.kubernetes.resources import EVENTS, NAMESPACES, NODES, PODS, SECRETS, Resource

Predicate = Callable[[Object], bool]
_FIELDS: dict[Resource, frozenset[str]] = {
    PODS: frozenset(
        {
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        }
    ),
    NODES: frozenset({"spec.unschedulable"}),
    NAMESPACES: frozenset({"status.phase"}),
    SECRETS: frozenset({"type"}),
    EVENTS: frozenset(
        {
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        }
    ),
}
_COMMON = frozenset({"metadata.name", "metadata.namespace"})
_SET = re.compile(r"^\s*(?P<key>[^\s!=,()]+)\s+(?P<op>in|notin)\s*\(\s*(?P<values>[^()]*)\)\s*$")
_EQUALITY = re.compile(r"^\s*(?P<key>[^\s!=,()]+)\s*(?P<op>==|=|!=)\s*(?P<value>[^\s!=,()]*)\s*$")
_EXISTS = re.compile(r"^\s*(?P<not>!?)\s*(?P<key>[^\s!=,()]+)\s*$")
_SPLIT = re.compile(r",(?![^()]*\))")


def _everything(_: Object) -> bool:
    return True


def predicate(resource: Resource, labels: str, fields: str) -> Predicate:
    """What both selectors admit; 400 when one cannot be read or names a field that is not served."""
    tests = _label_tests(labels) if labels else []
    tests += _field_tests(resource, fields) if fields else []
    if not tests:
        return _everything
    return lambda obj: all(test(obj) for test in tests)


def _label_tests(text: str) -> list[Predicate]:
    return [_label_test(part) for part in _SPLIT.split(text)]


def _label_test(text: str) -> Predicate:
    if match := _SET.match(text):
        key, wanted = match["key"], {value.strip() for value in match["values"].split(",")}
        if match["op"] == "in":
            return lambda obj: _labels(obj).get(key) in wanted
        return lambda obj: _labels(obj).get(key) not in wanted
    if match := _EQUALITY.match(text):
        key, value = match["key"], match["value"]
        if match["op"] == "!=":
            return lambda obj: _labels(obj).get(key) != value
        return lambda obj: _labels(obj).get(key) == value
    if match := _EXISTS.match(text):
        key, absent = match["key"], bool(match["not"])
        return lambda obj: (key in _labels(obj)) is not absent
    raise bad_request("unable to parse requirement of the label selector")


def _labels(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def _field_tests(resource: Resource, text: str) -> list[Predicate]:
    return [_field_test(resource, part) for part in text.split(",")]


def _field_test(resource: Resource, text: str) -> Predicate:
    match = _EQUALITY.match(text)
    if match is None:
        raise bad_request("invalid field selector")
    path, value = match["key"], match["value"]
    if path not in _COMMON and path not in _FIELDS.get(resource, frozenset()):
        raise bad_request(f"field label not supported: {path}")
    steps = path.split(".")
    wanted = match["op"] != "!="
    return lambda obj: (_text(obj, steps) == value) is wanted


def _text(obj: Object, steps: list[str]) -> str:
    node: Any = obj
    for step in steps:
        node = node.get(step) if isinstance(node, dict) else None
    if isinstance(node, bool):
        return "true" if node else "false"
    return "" if node is None else str(node)
