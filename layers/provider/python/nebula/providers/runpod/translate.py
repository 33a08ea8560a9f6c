"""One provision request to the body of ``POST /v2/pods``.

What RunPod cannot express is refused by name before any call. Field names and rules: RunPod's OpenAPI
document (CreatePodRequest) and the fields of ``newer.py``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from math import ceil
from typing import Any

from nebula.domain.candidate import CapacityType, Shape
from nebula.domain.offering import Offering
from nebula.domain.workload import EgressMode, Workload
from nebula.providers.base import ProvisionRequest
from nebula.providers.errors import InvalidWorkloadError, RequestRefusedError, UnsupportedAcceleratorError
from nebula.providers.runpod import marks

MAX_BODY_BYTES = 102_400
"""A larger request body is answered 413 (RunPod docs, "create a pod")."""

MAX_NAME_LENGTH = 191
"""The cap of REST v1; v2 states none."""

DEFAULT_DISK_GB = 20
"""A create without ``disk`` is refused; reports advise 20 GB or more."""

SECURE, COMMUNITY = "SECURE", "COMMUNITY"
_SECRET_PLACEHOLDER = "RUNPOD_SECRET_"  # noqa: S105  what marks a placeholder, not a secret
_LARGE_PARTS_NAMED = 3

FlavorOf = Callable[[str], Offering | None]


def cloud_of(parameters: Mapping[str, str]) -> str:
    """The pool's ``cloud`` parameter, SECURE when it has none. Raises ``RequestRefusedError``."""
    cloud = parameters.get("cloud", SECURE).strip().upper()
    if cloud not in (SECURE, COMMUNITY):
        raise RequestRefusedError(f"the pool's parameter cloud must be SECURE or COMMUNITY, not {cloud[:32]!r}")
    return cloud


def check(request: ProvisionRequest) -> None:
    """Refuse by name what RunPod cannot honour.

    Raises ``InvalidWorkloadError`` where the Pod must change, ``RequestRefusedError`` where another
    provider may serve it as it is.
    """
    workload, candidate = request.workload, request.candidate
    if candidate.capacity_type is not CapacityType.ON_DEMAND:
        raise RequestRefusedError(f"RunPod sells no {candidate.capacity_type} capacity")
    if workload.egress.mode is not EgressMode.OPEN:
        raise RequestRefusedError(f"RunPod cannot enforce the egress policy {workload.egress.mode}")
    if workload.working_dir is not None:
        raise RequestRefusedError("RunPod cannot set workingDir")
    if not 1 <= len(request.name) <= MAX_NAME_LENGTH:
        raise RequestRefusedError(f"the instance name has {len(request.name)} characters of 1 to {MAX_NAME_LENGTH}")
    if request.registry_credential_id is not None and not request.registry_credential_id:
        raise RequestRefusedError("the registry credential has no id; the image is not pulled anonymously instead")
    cloud_of(candidate.parameters)
    _check_environment(workload)


def _check_environment(workload: Workload) -> None:
    reserved = sorted(marks.RESERVED.intersection(workload.env))
    if reserved:
        raise InvalidWorkloadError(f"env {', '.join(reserved)} is reserved for Nebula")
    for name, value in workload.env.items():
        text = value.get_secret_value()
        if _SECRET_PLACEHOLDER in text and "{{" in text:
            raise InvalidWorkloadError(f"env {name} holds a RunPod secret placeholder, which would read the account's")


def body_for(request: ProvisionRequest, instance_type: str, flavor_of: FlavorOf, *, default_disk_gb: int) -> bytes:
    """The body that asks for one instance type, as it goes over the wire.

    ``flavor_of`` gives the offering of a CPU flavor. Raises ``UnsupportedAcceleratorError`` when the
    flavor cannot hold the shape, ``InvalidWorkloadError`` when the body is too large.
    """
    workload, shape = request.workload, request.candidate.shape
    content: dict[str, Any] = {
        "name": request.name,
        "image": workload.image,
        "cloud": cloud_of(request.candidate.parameters) if shape.accelerator else SECURE,
        "disk": default_disk_gb if shape.disk_gb is None else max(1, shape.disk_gb),
        # Ours come last, so that nothing a Pod sets can stand in for the mark.
        "env": {name: value.get_secret_value() for name, value in workload.env.items()}
        | marks.as_environment(request.mark),
    }
    if shape.accelerator:
        content["gpu"] = _gpu(shape, instance_type)
    else:
        content["cpu"] = _cpu(shape, instance_type, flavor_of(instance_type))
    content |= _command(workload) | _ports(workload)
    if request.candidate.regions:
        content["dataCenterIds"] = list(request.candidate.regions)
    if request.registry_credential_id is not None:
        content["registry"] = request.registry_credential_id
    return _encoded(content)


def _gpu(shape: Shape, gpu_id: str) -> dict[str, Any]:
    """Floors per GPU. Whether RunPod counts memory in GB or GiB is unknown: the Pod's GiB are sent as they are."""
    count = shape.accelerator_count
    gpu: dict[str, Any] = {"id": gpu_id, "count": count}
    if shape.cpu > 0:
        gpu["minVcpuCountPerGpu"] = ceil(shape.cpu / count)
    if shape.memory_gib > 0:
        gpu["minRamPerGpu"] = ceil(shape.memory_gib / count)
    return gpu


def _cpu(shape: Shape, flavor_id: str, flavor: Offering | None) -> dict[str, Any]:
    vcpus = flavor.rented_vcpus(shape) if flavor is not None else None
    if vcpus is None:
        raise UnsupportedAcceleratorError(f"CPU flavor {flavor_id} cannot hold {shape}")
    return {"id": flavor_id, "vcpuCount": vcpus}


def _command(workload: Workload) -> dict[str, list[str]]:
    """Kubernetes' command and args: a command alone drops the image's CMD too, an empty list counts as unset."""
    if workload.command:
        return {"entrypoint": list(workload.command), "cmd": list(workload.args or ())}
    return {"cmd": list(workload.args)} if workload.args else {}


def _ports(workload: Workload) -> dict[str, list[str]]:
    """Exactly the ports that are open; without ``ports`` RunPod publishes none."""
    ports = dict.fromkeys(f"{one.port}/{one.protocol.lower()}" for one in workload.ports)
    return {"ports": list(ports)} if ports else {}


def _encoded(content: dict[str, Any]) -> bytes:
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    if len(body) > MAX_BODY_BYTES:
        raise InvalidWorkloadError(
            f"the request has {len(body)} bytes, RunPod takes {MAX_BODY_BYTES}; largest: {', '.join(_largest(content))}"
        )
    return body


def _largest(content: Mapping[str, Any]) -> list[str]:
    """The names of the largest parts with their sizes; values are never shown."""
    sizes = {f"env {name}": len(value.encode("utf-8", "surrogatepass")) for name, value in content["env"].items()}
    for member, word in (("entrypoint", "command"), ("cmd", "args")):
        sizes[word] = sum(len(part.encode("utf-8", "surrogatepass")) for part in content.get(member, ()))
    ranked = sorted(sizes, key=lambda name: -sizes[name])[:_LARGE_PARTS_NAMED]
    return [f"{name} ({sizes[name]} bytes)" for name in ranked if sizes[name]]
