"""The patches that let a Pod go to its Node, or keep a late one from landing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nebula.kubernetes import names
from nebula.kubernetes.api import Object
from nebula.kubernetes.pod import Pod

#: What admission (DefaultTolerationSeconds) puts on every Pod that does not say otherwise.
INJECTED_SECONDS: Final = 300
#: Bytes of all annotations of an object, keys included, that an API server takes; and what ours may need of them.
_ANNOTATION_BYTES: Final = 256 * 1024
_OUR_BYTES: Final = 4 * 1024
_NODE_TROUBLE: Final = (names.TAINT_NOT_READY, names.TAINT_UNREACHABLE)


def release_patch(pod: Pod, *, provider: str, annotations: Mapping[str, str]) -> dict[str, Any]:
    """One strategic merge patch, guarded by uid and resourceVersion.

    It adds the annotations and the nodeSelector of the provider's Node, replaces the tolerations by
    the edited list, and removes our gate only. Two writers cannot both win: the loser gets a 409.
    """
    return {
        "metadata": {**_guard(pod), "annotations": dict(annotations)},
        "spec": {
            "nodeSelector": {names.LABEL_PROVIDER: provider},
            "tolerations": released_tolerations(pod),
            "schedulingGates": [{"$patch": "delete", "name": names.GATE}],
        },
    }


def moved_patch(pod: Pod) -> dict[str, Any]:
    """A guarded write that changes nothing but resourceVersion.

    After it, a release patch whose answer was lost can only meet a conflict. A patch without a
    difference would not move the version, hence the annotation, which names the version left behind.
    """
    return {"metadata": {**_guard(pod), "annotations": {names.ANNOTATION_WITHDRAWN_AT: pod.resource_version}}}


def moved_status_patch(pod: Pod) -> dict[str, Any]:
    """As ``moved_patch``, by way of ``/status``: for a Pod whose metadata we may not, or cannot, write.

    A role without ``pods patch``, a Pod whose annotations are full. The condition names the version left behind.
    """
    message = f"the instance is being taken back; the Pod was read at resourceVersion {pod.resource_version}"
    condition = {"type": names.CONDITION_RELEASED, "status": "False", "reason": "Withdrawing", "message": message}
    return {"metadata": _guard(pod), "status": {"conditions": [condition]}}


def has_room(pod: Pod) -> bool:
    """Whether the annotations of a release still fit beside the Pod's own."""
    used = sum(len(key.encode()) + len(text.encode()) for key, text in pod.annotations.items())
    return used + _OUR_BYTES <= _ANNOTATION_BYTES


def released_tolerations(pod: Pod) -> list[Object]:
    """The Pod's tolerations with what it needs on a virtual Node.

    The API server lets a toleration be added, and an old one change only its time limit; every old
    entry comes back in its place. The injected 300 s on ``not-ready`` and ``unreachable`` are lifted
    in place: eviction obeys the first entry that matches, so one appended behind would change
    nothing. A limit of another length is the user's own and stays.
    """
    old = [_lifted(entry) for entry in pod.spec.get("tolerations") or []]
    held = {_identity(entry) for entry in old}
    return [*old, *(entry for entry in _wanted() if _identity(entry) not in held)]


def _wanted() -> list[Object]:
    entries: list[Object] = [{"key": names.TAINT_PROVIDER, "operator": "Exists", "effect": "NoSchedule"}]
    for key in _NODE_TROUBLE:
        entries += [{"key": key, "operator": "Exists", "effect": effect} for effect in ("NoExecute", "NoSchedule")]
    # A cloud's route controller finds no machine to route to, and says so again and again.
    return [*entries, {"key": names.TAINT_NETWORK_UNAVAILABLE, "operator": "Exists", "effect": "NoSchedule"}]


def _lifted(entry: Mapping[str, Any]) -> Object:
    injected = (
        entry.get("key") in _NODE_TROUBLE
        and entry.get("operator") == "Exists"
        and entry.get("effect") == "NoExecute"
        and entry.get("tolerationSeconds") == INJECTED_SECONDS
    )
    return {key: value for key, value in entry.items() if not (injected and key == "tolerationSeconds")}


def _identity(entry: Mapping[str, Any]) -> tuple[str, str, str, str]:
    return (
        str(entry.get("key") or ""),
        str(entry.get("operator") or "Equal"),
        str(entry.get("value") or ""),
        str(entry.get("effect") or ""),
    )


def _guard(pod: Pod) -> dict[str, str]:
    return {"uid": pod.uid, "resourceVersion": pod.resource_version}
