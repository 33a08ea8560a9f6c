"""Strict checks of request bodies: unknown members, types, bounds (422), cross-field rules (400).

Members and rules of the OpenAPI document, plus ``entrypoint``, ``cmd`` and the two floors per GPU, which
RunPod's newer "create a pod" page added.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from local.runpod.wire import ProblemError

MAX_BODY_BYTES = 102_400
NO_DISK = "You must either provide a template id or pod configuration parameters"

Check = Callable[[Any], str]
_PORT = re.compile(r"\d{1,5}/(http|tcp)")


def _text(value: Any) -> str:
    return "" if isinstance(value, str) and value else "value must be a non-empty string"


def _loose_text(value: Any) -> str:
    return "" if isinstance(value, str) else "value must be a string"


def _nullable_text(value: Any) -> str:
    return "" if value is None else _text(value)


def _texts(value: Any) -> str:
    good = isinstance(value, list) and all(isinstance(one, str) for one in value)
    return "" if good else "value must be an array of strings"


def _flag(value: Any) -> str:
    return "" if isinstance(value, bool) else "value must be a boolean"


def _environment(value: Any) -> str:
    good = isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
    return "" if good else "value must be an object of strings"


def _object(value: Any) -> str:
    return "" if isinstance(value, dict) else "value must be an object"


def at_least(least: int) -> Check:
    """An integer of at least ``least``."""

    def check(value: Any) -> str:
        good = isinstance(value, int) and not isinstance(value, bool) and value >= least
        return "" if good else f"value must be an integer of at least {least}"

    return check


def one_of(*choices: str) -> Check:
    """One of some strings."""
    listed = ", ".join(f"'{choice}'" for choice in choices)
    return lambda value: "" if value in choices else f"value must be one of {listed}"


def _ports(value: Any) -> str:
    # Whether RunPod answers a bad port with 422 or 400 is unknown; here 422.
    if _texts(value):
        return _texts(value)
    return "" if all(_PORT.fullmatch(one) for one in value) else "value must be like 8080/http or 22/tcp"


CREATE_POD: Mapping[str, Check] = {
    "name": _text,
    "image": _text,
    "gpu": _object,
    "cpu": _object,
    "cloud": one_of("SECURE", "COMMUNITY"),
    "dataCenterIds": _texts,
    "disk": at_least(1),
    "env": _environment,
    "ports": _ports,
    "entrypoint": _texts,
    "cmd": _texts,
    "args": _loose_text,
    "registry": _nullable_text,
    "mounts": _object,
    "globalNetworking": _flag,
    "startSsh": _flag,
    "startJupyter": _flag,
    "templateId": _text,
}
GPU: Mapping[str, Check] = {
    "id": _text,
    "count": at_least(1),
    "allowedCudaVersions": _texts,
    "minCudaVersion": _text,
    "minRamPerGpu": at_least(1),
    "minVcpuCountPerGpu": at_least(1),
}
CPU: Mapping[str, Check] = {"id": _text, "vcpuCount": at_least(2)}
CREATE_REGISTRY: Mapping[str, Check] = {"name": _text, "username": _text, "password": _text}
ACTION: Mapping[str, Check] = {"action": one_of("start", "stop", "restart", "terminate")}


def validate(content: Mapping[str, Any], members: Mapping[str, Check], needed: tuple[str, ...]) -> None:
    """Raise a 422 that lists every violation."""
    errors = _violations("$", content, members, needed)
    if errors:
        raise ProblemError(422, "Request validation failed.", errors=errors)


def check_size(body: bytes) -> None:
    """Raise a 413 for a body over the limit."""
    if len(body) > MAX_BODY_BYTES:
        raise ProblemError(413, "request body exceeds 102400 bytes")


def check_pod(content: Mapping[str, Any]) -> None:
    """Check a ``POST /v2/pods`` body: the schema first, then the rules between members."""
    needed = ("name",) if "templateId" in content else ("name", "image")
    errors = _violations("$", content, CREATE_POD, needed)
    for member, members, wanted in (("gpu", GPU, ("id",)), ("cpu", CPU, ("id", "vcpuCount"))):
        if isinstance(content.get(member), dict):
            errors += _violations(f"$.{member}", content[member], members, wanted)
    if errors:
        raise ProblemError(422, "Request validation failed.", errors=errors)
    _check_rules(content)


def _check_rules(content: Mapping[str, Any]) -> None:
    if ("gpu" in content) == ("cpu" in content):
        raise ProblemError(400, "exactly one of gpu or cpu must be set")
    if "templateId" in content:
        raise ProblemError(404, "template not found")
    if "disk" not in content:
        raise ProblemError(400, NO_DISK)
    if content.get("mounts"):
        raise ProblemError(400, "mounts are not simulated")
    gpu, cpu = content.get("gpu", {}), content.get("cpu", {})
    if gpu.get("allowedCudaVersions") and gpu.get("minCudaVersion"):
        raise ProblemError(400, "allowedCudaVersions and minCudaVersion are mutually exclusive")
    count = cpu.get("vcpuCount", 2)
    if count & (count - 1):
        raise ProblemError(400, "cpu.vcpuCount must be a power of two")
    if cpu and content.get("cloud") == "COMMUNITY":
        raise ProblemError(400, "CPU pods run on SECURE cloud only")


def _violations(
    place: str, content: Mapping[str, Any], members: Mapping[str, Check], needed: tuple[str, ...]
) -> list[str]:
    errors = [f"{place}: missing property '{name}'" for name in needed if name not in content]
    unknown = sorted(set(content) - set(members))
    if unknown:
        errors.append(f"{place}: additional properties {', '.join(map(repr, unknown))} not allowed")
    for name, value in content.items():
        problem = members[name](value) if name in members else ""
        if problem:
            errors.append(f"{place}.{name}: {problem}")
    return errors
