"""From a wanted Pod status to the strategic merge patch of ``/status``, or to nothing.

``conditions`` merge by type under that patch, so the scheduler's survive; ``containerStatuses`` is
atomic and sent whole. Neither podIP nor hostIP is ever written: a host name there would fail the
whole patch.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from nebula.kubernetes.api import Object
from nebula.kubernetes.names import CONDITION_RELEASED
from nebula.kubernetes.pod import Pod
from nebula.kubernetes.times import format_time
from nebula.lifecycle.pod_status import Condition, ContainerState, PodStatus

_READY: Final = "Ready"
#: Shown with the first status after release, so that it costs no write of its own.
_RELEASED: Final = Condition(CONDITION_RELEASED, "True", "Released")


def status_patch(pod: Pod, desired: PodStatus, now: datetime) -> dict[str, Any] | None:
    """The patch that makes the live status say what is desired; None when it does already.

    A terminal phase is sticky: the API server would let it change, so we do not ask. A gated Pod that
    nobody deletes runs nowhere and is left alone. The patch is guarded by uid and resourceVersion (409:
    re-read).
    """
    if pod.terminal or (pod.gated and pod.deletion_timestamp is None):
        return None
    changes = _changes(pod, desired, now)
    stale = pod.status.get("observedGeneration") not in (None, pod.generation)
    if not changes and not stale:
        return None
    if pod.generation is not None:
        changes["observedGeneration"] = pod.generation
    return {"metadata": {"uid": pod.uid, "resourceVersion": pod.resource_version}, "status": changes}


def condition_patch(
    pod: Pod, type_: str, status: str, reason: str, message: str, now: datetime
) -> dict[str, Any] | None:
    """The patch that sets one condition; None when the live one says the same.

    Guarded by uid only: one condition merges by type and cannot undo another writer's work.
    """
    written = _condition(pod, Condition(type_, status, reason, message), now)
    if written is None:
        return None
    return {"metadata": {"uid": pod.uid}, "status": {"conditions": [written]}}


def _changes(pod: Pod, desired: PodStatus, now: datetime) -> dict[str, Any]:
    live = pod.status
    changes: dict[str, Any] = {}
    if live.get("phase") != desired.phase:
        changes["phase"] = desired.phase
    for key, text in (("reason", desired.reason), ("message", desired.message)):
        if (live.get(key) or "") != text:
            changes[key] = text or None
    if not live.get("startTime") and desired.start_time is not None:
        changes["startTime"] = format_time(desired.start_time)
    shown = _with_readiness_gates(pod, desired.conditions)
    if desired.start_time is not None:
        shown.append(_RELEASED)
    conditions = [_condition(pod, wanted, now) for wanted in shown]
    if any(conditions):
        changes["conditions"] = [condition for condition in conditions if condition is not None]
    container = _container(pod, desired)
    if not _shown(live.get("containerStatuses") or [], container):
        changes["containerStatuses"] = [container]
    return changes


def _shown(live: list[Any], wanted: Object) -> bool:
    """Whether the one container is shown so already; what else a newer server keeps of it is its own."""
    return len(live) == 1 and all((live[0].get(key) or {}) == (value or {}) for key, value in wanted.items())


def _with_readiness_gates(pod: Pod, conditions: tuple[Condition, ...]) -> list[Condition]:
    """``Ready`` is the AND of ContainersReady and the conditions named by ``spec.readinessGates``."""
    gates = [str(gate.get("conditionType")) for gate in pod.spec.get("readinessGates") or []]
    missing = [gate for gate in gates if (pod.condition(gate) or {}).get("status") != "True"]
    if not missing:
        return list(conditions)
    unready = Condition(_READY, "False", "ReadinessGatesNotReady", f"not True: {', '.join(missing)}")
    return [unready if c.type == _READY and c.status == "True" else c for c in conditions]


def _condition(pod: Pod, wanted: Condition, now: datetime) -> Object | None:
    """The condition as it should be written, None when it stands so already.

    ``lastTransitionTime`` moves with the status only: availability is computed from it.
    """
    live = pod.condition(wanted.type) or {}
    same = live.get("status") == wanted.status
    if same and (live.get("reason") or "") == wanted.reason and (live.get("message") or "") == wanted.message:
        return None
    since = live.get("lastTransitionTime") if same else None
    written: Object = {
        "type": wanted.type,
        "status": wanted.status,
        "reason": wanted.reason or None,
        "message": wanted.message or None,
        "lastTransitionTime": since or format_time(now),
    }
    if not live:
        written = {key: value for key, value in written.items() if value is not None}
    if pod.generation is not None:
        written["observedGeneration"] = pod.generation
    return written


def _container(pod: Pod, desired: PodStatus) -> Object:
    live = _live_container(pod, desired.container_name)
    running = desired.container.kind == "running"
    return {
        "name": desired.container_name,
        # Once shown it stays: an image that is edited after the release never gets to the instance.
        "image": str(live.get("image") or desired.image),
        "imageID": str(live.get("imageID") or ""),
        "ready": running,
        "started": running,
        "restartCount": int(live.get("restartCount") or 0),
        "lastState": live.get("lastState") or {},
        "state": _state(desired.container, live.get("state") or {}),
    }


def _live_container(pod: Pod, name: str) -> Mapping[str, Any]:
    found = pod.status.get("containerStatuses") or []
    return next((c for c in found if isinstance(c, dict) and c.get("name") == name), {})


def _state(wanted: ContainerState, live: Mapping[str, Any]) -> Object:
    """One of waiting, running, terminated. A start time once shown is kept."""
    started = wanted.started_at
    if wanted.kind == "waiting":
        return {"waiting": _texts(reason=wanted.reason, message=wanted.message)}
    shown = (live.get("running") or {}).get("startedAt")
    started_at = shown or (format_time(started) if started is not None else None)
    if wanted.kind == "running":
        return {"running": _texts(startedAt=started_at)}
    return {
        "terminated": {
            "exitCode": wanted.exit_code,
            **_texts(
                reason=wanted.reason,
                message=wanted.message,
                startedAt=started_at,
                finishedAt=format_time(wanted.finished_at) if wanted.finished_at is not None else None,
            ),
        }
    }


def _texts(**values: str | None) -> Object:
    return {key: value for key, value in values.items() if value}
