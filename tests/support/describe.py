"""``kubectl describe pod``, for machines without kubectl: its layout, from the object and its Events.

Only the fields that Pods of the tests have. ``tests/integration/test_kubectl.py`` compares it with the real one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from local.kubernetes.durations import human
from local.kubernetes.resources import EVENTS
from tests.support.world import World

Object = dict[str, Any]
_PADDING = 2
#: A claim's id is made of a uid, which is another one in each run.
_CLAIM_ID = re.compile(r"\b[0-9a-f]{32}\b")
_SHOWN_ID = "6d2f0a91c7b84e35a0d9f4b1e2c83756"


def describe(world: World, name: str = "train") -> str:
    """What ``kubectl describe pod`` prints at this moment, claim ids made the same, trailing blanks off."""
    pod = world.pod(name)
    assert pod is not None
    events = [record.object for record in world.emulator.store.records(EVENTS, "default")]
    mine = sorted(
        (one for one in events if one["involvedObject"]["uid"] == pod["metadata"]["uid"]),
        key=lambda one: one["lastTimestamp"],
    )
    return settled("\n".join(_tabulated([*_pod(pod), *_events(mine, world.clock.now())])))


def settled(text: str) -> str:
    """The same in every run: claim ids and trailing blanks."""
    lines = (line.rstrip() for line in _CLAIM_ID.sub(_SHOWN_ID, text).splitlines())
    return "\n".join(lines).rstrip("\n") + "\n"


def _pod(pod: Object) -> Iterator[str]:
    metadata, spec, status = pod["metadata"], pod["spec"], pod["status"]
    yield f"Name:\t{metadata['name']}"
    yield f"Namespace:\t{metadata['namespace']}"
    yield f"Priority:\t{spec.get('priority', 0)}"
    yield f"Service Account:\t{spec.get('serviceAccountName', 'default')}"
    yield f"Node:\t{spec['nodeName']}/{status.get('hostIP', '')}" if spec.get("nodeName") else "Node:\t<none>"
    if "startTime" in status:
        yield f"Start Time:\t{_time(status['startTime'])}"
    yield from _listed("Labels", [f"{key}={value}" for key, value in sorted(metadata.get("labels", {}).items())])
    annotations = metadata.get("annotations") or {}
    yield from _listed("Annotations", [f"{key}: {value}" for key, value in sorted(annotations.items())])
    yield f"Status:\t{status['phase']}"
    yield from (f"{key}:\t{status[key.lower()]}" for key in ("Reason", "Message") if status.get(key.lower()))
    yield f"IP:\t{status.get('podIP', '')}"
    yield "IPs:\t<none>"
    owners = [one for one in metadata.get("ownerReferences") or [] if one.get("controller")]
    yield from (f"Controlled By:\t{one['kind']}/{one['name']}" for one in owners)
    yield "Containers:"
    states = {one["name"]: one for one in status.get("containerStatuses", [])}
    for container in spec["containers"]:
        yield from _container(container, states.get(container["name"]))
    yield "Conditions:"
    yield "  Type\tStatus"
    yield from (f"  {one['type']} \t{one['status']} " for one in status.get("conditions", []))
    yield "Volumes:\t<none>"
    yield f"QoS Class:\t{status['qosClass']}"
    selector = spec.get("nodeSelector") or {}
    yield from _listed("Node-Selectors", [f"{key}={value}" for key, value in sorted(selector.items())])
    yield from _listed("Tolerations", sorted(map(_toleration, spec.get("tolerations") or [])))


def _container(container: Object, state: Object | None) -> Iterator[str]:
    yield f"  {container['name']}:"
    if state is not None:
        yield "    Container ID:\t"
    yield f"    Image:\t{container['image']}"
    if state is not None:
        yield f"    Image ID:\t{state['imageID']}"
    yield from ("    Port:\t<none>", "    Host Port:\t<none>")
    if state is not None:
        yield from _state(state["state"])
        yield f"    Ready:\t{state['ready']}"
        yield f"    Restart Count:\t{state['restartCount']}"
    resources = container.get("resources") or {}
    for title in ("Limits", "Requests"):
        if resources.get(title.lower()):
            yield f"    {title}:"
            yield from (f"      {key}:\t{value}" for key, value in sorted(resources[title.lower()].items()))
    yield from ("    Environment:\t<none>", "    Mounts:\t<none>")


def _state(state: Object) -> Iterator[str]:
    ((kind, told),) = state.items()
    yield f"    State:\t{kind.capitalize()}"
    for key in ("reason", "message"):
        if told.get(key):
            yield f"      {key.capitalize()}:\t{told[key]}"
    if kind == "terminated":
        yield f"      Exit Code:\t{told['exitCode']}"
    for key, title in (("startedAt", "Started"), ("finishedAt", "Finished")):
        if key in told:
            yield f"      {title}:\t{_time(told[key])}"


def _toleration(toleration: Object) -> str:
    text = str(toleration.get("key", ""))
    text += f"={toleration['value']}" if toleration.get("value") else ""
    text += f":{toleration['effect']}" if toleration.get("effect") else ""
    text += " op=Exists" if toleration.get("operator") == "Exists" else ""
    seconds = toleration.get("tolerationSeconds")
    return text if seconds is None else f"{text} for {seconds}s"


def _events(events: Sequence[Object], now: datetime) -> Iterator[str]:
    if not events:
        yield "Events:\t<none>"
        return
    yield "Events:"
    yield "  Type\tReason\tAge\tFrom\tMessage"
    yield "  ----\t------\t----\t----\t-------"
    for one in events:
        age = _age(now, one["lastTimestamp"])
        if one.get("count", 1) > 1:
            age += f" (x{one['count']} over {_age(now, one['firstTimestamp'])})"
        yield f"  {one['type']}\t{one['reason']}\t{age}\t{one['source']['component']}\t{one['message']}"


def _listed(title: str, values: Sequence[str]) -> Iterator[str]:
    for number, value in enumerate(values or ["<none>"]):
        yield f"{'' if number else title + ':'}\t{value}"


def _time(text: str) -> str:
    return datetime.fromisoformat(text).strftime("%a, %d %b %Y %H:%M:%S %z")


def _age(now: datetime, since: str) -> str:
    return human(now - datetime.fromisoformat(since))


def _tabulated(lines: Sequence[str]) -> list[str]:
    """Elastic tab stops: a column is as wide as its widest cell among neighbouring lines that have it."""
    rows = [line.split("\t") for line in lines]
    for column in range(max(map(len, rows)) - 1):
        start = 0
        while start < len(rows):
            end = start
            while end < len(rows) and len(rows[end]) > column + 1:
                end += 1
            width = max((len(row[column]) for row in rows[start:end]), default=0) + _PADDING
            for row in rows[start:end]:
                row[column] = row[column].ljust(width)
            start = max(end, start + 1)
    return ["".join(row) for row in rows]
