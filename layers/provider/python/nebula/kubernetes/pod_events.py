"""core/v1 Events on a Pod: counted, never repeated (``kubectl describe pod`` shows them)."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any, Final

from nebula.kubernetes.api import ConflictError, KubernetesApi, KubernetesError, NotFoundError
from nebula.kubernetes.pod import Pod
from nebula.kubernetes.times import format_time

#: The API server's own limit for a note of the newer Event API; kubectl wraps at it as well.
MAX_MESSAGE: Final = 1024
_MAX_POD_PART: Final = 253 - 17


def record(
    api: KubernetesApi, pod: Pod, *, type_: str, reason: str, message: str, now: datetime, component: str
) -> bool:
    """Show an Event on the Pod; True when it is there.

    The name is derived from the Pod's uid, the reason and the message, so that saying the same again
    raises the count of the one object. ``type_`` is ``Normal`` or ``Warning``. Never raises: an Event
    is a courtesy, and no decision may fail over it.
    """
    text = _shortened(message)
    name = event_name(pod, reason, text)
    try:
        return _create_or_count(api, pod, name, _event(pod, name, type_, reason, text, now, component), now)
    except KubernetesError:
        return False


def event_name(pod: Pod, reason: str, message: str) -> str:
    """``<pod>.<16 hex>`` of (uid, reason, message), within the limit of an object name."""
    digest = hashlib.sha256("\0".join((pod.uid, reason, message)).encode()).hexdigest()[:16]
    return f"{pod.name[:_MAX_POD_PART].rstrip('.-')}.{digest}"


def _create_or_count(api: KubernetesApi, pod: Pod, name: str, event: dict[str, Any], now: datetime) -> bool:
    try:
        api.create_event(pod.namespace, event)
    except ConflictError:
        return _count(api, pod, name, now)
    return True


def _count(api: KubernetesApi, pod: Pod, name: str, now: datetime) -> bool:
    """Raise the count of an Event that exists. Our role may not read Events; a patch answers with one."""
    try:
        found = api.patch_event(pod.namespace, name, {"lastTimestamp": format_time(now)})
    except NotFoundError:
        return False
    count = found.get("count")
    api.patch_event(pod.namespace, name, {"count": (count if isinstance(count, int) else 1) + 1})
    return True


def _event(pod: Pod, name: str, type_: str, reason: str, message: str, now: datetime, component: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": pod.namespace},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": pod.namespace,
            "name": pod.name,
            "uid": pod.uid,
            "resourceVersion": pod.resource_version,
        },
        "type": type_,
        "reason": reason,
        "message": message,
        "count": 1,
        "firstTimestamp": format_time(now),
        "lastTimestamp": format_time(now),
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": component,
    }


def _shortened(message: str) -> str:
    if len(message.encode()) <= MAX_MESSAGE:
        return message
    return message.encode()[: MAX_MESSAGE - 3].decode(errors="ignore") + "…"
