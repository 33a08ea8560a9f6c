"""``kubectl get``: the columns that an API server prints for a kind, since kubectl asks for tables, not objects."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from local.kubernetes.durations import human
from local.kubernetes.errors import Object
from local.kubernetes.resources import EVENTS, NODE_POOLS, NODES, PODS, Resource


class Column(NamedTuple):
    """A heading, how a cell is made, and whether only ``-o wide`` shows it."""

    name: str
    cell: Callable[[Object, datetime], Any]
    wide: bool = False


def wanted(headers: Mapping[str, str]) -> bool:
    """Whether a table is what the client would rather have."""
    return "as=Table" in headers.get("accept", "")


def table(resource: Resource, encoded: bytes, now: datetime) -> bytes:
    """An object or a list as a ``meta.k8s.io/v1`` Table."""
    read: Object = json.loads(encoded)
    items = read["items"] if "items" in read and read["kind"].endswith("List") else [read]
    columns = _COLUMNS.get(resource, (_NAME, _AGE))
    definitions = [
        {"name": c.name, "type": "string", "format": "name" if c.name == "Name" else "", "priority": int(c.wide)}
        for c in columns
    ]
    rows = [
        {
            "cells": [column.cell(item, now) for column in columns],
            "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": item["metadata"]},
        }
        for item in items
    ]
    metadata = {key: value for key, value in read["metadata"].items() if key in ("resourceVersion", "continue")}
    told = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
    return json.dumps({**told, "columnDefinitions": definitions, "rows": rows}).encode()


def told(resource: Resource, line: bytes, now: datetime) -> bytes:
    """A line of a watch with a table of one row in the place of its object; errors and bookmarks as they are."""
    event: Object = json.loads(line)
    if event["type"] not in ("ADDED", "MODIFIED", "DELETED"):
        return line
    row: Object = json.loads(table(resource, json.dumps(event["object"]).encode(), now))
    return json.dumps({**event, "object": row}).encode() + b"\n"


def _path(*path: str) -> Callable[[Object, datetime], Any]:
    def cell(obj: Object, _now: datetime) -> Any:
        found: Any = obj
        for name in path:
            found = (found or {}).get(name)
        return found if found is not None else "<none>"

    return cell


def _since(*path: str) -> Callable[[Object, datetime], str]:
    read = _path(*path)

    def cell(obj: Object, now: datetime) -> str:
        text = read(obj, now)
        return "<unknown>" if text == "<none>" else human(now - datetime.fromisoformat(text))

    return cell


def _condition(obj: Object, kind: str) -> Object:
    conditions = (obj.get("status") or {}).get("conditions") or []
    return next((one for one in conditions if one.get("type") == kind), {})


def _ready(pod: Object, _now: datetime) -> str:
    states = (pod.get("status") or {}).get("containerStatuses") or []
    return f"{sum(1 for one in states if one.get('ready'))}/{len(pod['spec']['containers'])}"


def _restarts(pod: Object, _now: datetime) -> str:
    return str(sum(one.get("restartCount", 0) for one in (pod.get("status") or {}).get("containerStatuses") or []))


def _pod_status(pod: Object, _now: datetime) -> str:
    """The gate, the phase, or what a container says; a deletion above all."""
    status = pod.get("status") or {}
    reason = status.get("reason") or status.get("phase") or "Unknown"
    if _condition(pod, "PodScheduled").get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    for one in status.get("containerStatuses") or []:
        state = one.get("state") or {}
        reason = (state.get("waiting") or state.get("terminated") or {}).get("reason") or reason
    return "Terminating" if "deletionTimestamp" in pod["metadata"] else str(reason)


def _node_status(node: Object, _now: datetime) -> str:
    status = _condition(node, "Ready").get("status", "Unknown")
    told = "Ready" if status == "True" else "NotReady"
    return told + (",SchedulingDisabled" if (node.get("spec") or {}).get("unschedulable") else "")


def _about(event: Object, _now: datetime) -> str:
    about = event.get("involvedObject") or {}
    return f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}"


_NAME = Column("Name", _path("metadata", "name"))
_AGE = Column("Age", _since("metadata", "creationTimestamp"))
_COLUMNS: dict[Resource, tuple[Column, ...]] = {
    PODS: (
        _NAME,
        Column("Ready", _ready),
        Column("Status", _pod_status),
        Column("Restarts", _restarts),
        _AGE,
        Column("IP", _path("status", "podIP"), wide=True),
        Column("Node", _path("spec", "nodeName"), wide=True),
    ),
    NODES: (
        _NAME,
        Column("Status", _node_status),
        Column("Roles", lambda _node, _now: "<none>"),
        _AGE,
        Column("Version", _path("status", "nodeInfo", "kubeletVersion")),
    ),
    NODE_POOLS: (
        _NAME,
        Column("Status", lambda pool, _now: _condition(pool, "Ready").get("status", "")),
        Column("Strategy", _path("spec", "strategy")),
        Column("Providers", _path("status", "providers")),
        Column("Committed", _path("status", "committedPerHour")),
        Column("Budget", _path("spec", "budgetPerHour")),
        Column("Reason", lambda pool, _now: _condition(pool, "Ready").get("reason", ""), wide=True),
        _AGE,
    ),
    EVENTS: (
        Column("Last Seen", _since("lastTimestamp")),
        Column("Type", _path("type")),
        Column("Reason", _path("reason")),
        Column("Object", _about),
        Column("Message", _path("message")),
        Column("Name", _path("metadata", "name"), wide=True),
    ),
}
