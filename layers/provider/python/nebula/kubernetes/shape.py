"""What a Pod asks for, as a shape: accelerator type and count, vCPU, memory, disk."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from nebula.domain.candidate import Shape
from nebula.kubernetes import names
from nebula.kubernetes.api import Object
from nebula.kubernetes.pod import Pod
from nebula.kubernetes.quantity import InvalidQuantityError, ceil_to, parse_quantity
from nebula.kubernetes.workload_errors import InvalidPodError

GIB: Final = Decimal(2**30)
GB: Final = Decimal(10**9)
_MILLICORE: Final = Decimal("0.001")
#: Memory is kept to this part of a GiB, rounded up: about a KiB.
_MEMORY_STEP: Final = Decimal("0.000001")
_SERVED: Final = frozenset({"cpu", "memory", "ephemeral-storage", names.RESOURCE_GPU})
_TYPE: Final = re.compile(r"[A-Z0-9]([A-Z0-9._-]{0,61}[A-Z0-9])?", re.ASCII)


def shape_of(pod: Pod) -> Shape:
    """The shape that a Pod asks for; InvalidPodError for a request that nobody can serve as meant.

    The accelerator type is the label in upper case, the count ``nvidia.com/gpu`` from limits (an API server
    takes no other, nor requests that differ); a type without a count means one. vCPU, memory and disk are
    floors from requests, else limits; disk is ``ephemeral-storage`` rounded up to GB. Containers add up,
    except the accelerator count, over which they must agree.
    """
    for container in pod.containers:
        _check_served(container)
    accelerator = _accelerator_type(pod)
    count = _count(pod, accelerator)
    disk = _total(pod, "ephemeral-storage")
    return Shape(
        accelerator=accelerator,
        accelerator_count=count,
        cpu=ceil_to(_total(pod, "cpu"), _MILLICORE),
        memory_gib=ceil_to(_total(pod, "memory") / GIB, _MEMORY_STEP),
        disk_gb=int(ceil_to(disk, GB) / GB) if disk else None,
    )


def _check_served(container: Object) -> None:
    for section in ("requests", "limits"):
        for key in _section(container, section):
            if key not in _SERVED:
                text = f"container {container.get('name')}: resource {key} is not offered; only {names.RESOURCE_GPU} is"
                raise InvalidPodError("UnsupportedResource", text)


def _accelerator_type(pod: Pod) -> str | None:
    label = pod.labels.get(names.LABEL_ACCELERATOR_TYPE, "").strip().upper()
    if label and not _TYPE.fullmatch(label):
        text = f"label {names.LABEL_ACCELERATOR_TYPE} is not the name of an accelerator"
        raise InvalidPodError("InvalidAcceleratorType", text)
    return label or None


def _count(pod: Pod, accelerator: str | None) -> int:
    counts = {count for c in pod.containers if (count := _container_count(c)) is not None}
    if len(counts - {0}) > 1:
        listed = ", ".join(str(count) for count in sorted(counts))
        raise InvalidPodError("AcceleratorCountsDiffer", f"containers ask for different {names.RESOURCE_GPU}: {listed}")
    count = max(counts, default=None)
    if accelerator is None:
        if count:
            text = f"{names.RESOURCE_GPU}={count} without label {names.LABEL_ACCELERATOR_TYPE}"
            raise InvalidPodError("AcceleratorTypeMissing", text)
        return 0
    if count == 0:
        text = f"label {names.LABEL_ACCELERATOR_TYPE} with {names.RESOURCE_GPU}=0 contradict each other"
        raise InvalidPodError("AcceleratorCountZero", text)
    return 1 if count is None else count


def _container_count(container: Object) -> int | None:
    """The count from limits; None when the container names none. What an API server refuses is refused."""
    limits, requests = _section(container, "limits"), _section(container, "requests")
    held = [
        _amount(container, names.RESOURCE_GPU, section[names.RESOURCE_GPU])
        for section in (limits, requests)
        if names.RESOURCE_GPU in section
    ]
    if not held:
        return None
    if names.RESOURCE_GPU not in limits:
        text = f"container {container.get('name')}: {names.RESOURCE_GPU} is requested but not in limits"
        raise InvalidPodError("AcceleratorLimitMissing", text)
    if held[0] != held[-1]:
        text = f"container {container.get('name')}: {names.RESOURCE_GPU} differs between requests and limits"
        raise InvalidPodError("AcceleratorCountsDiffer", text)
    if held[0] != held[0].to_integral_value():
        text = f"container {container.get('name')}: {names.RESOURCE_GPU} must be a whole number"
        raise InvalidPodError("AcceleratorCountFractional", text)
    return int(held[0])


def _total(pod: Pod, resource: str) -> Decimal:
    total = Decimal(0)
    for container in pod.containers:
        requests, limits = _section(container, "requests"), _section(container, "limits")
        value = requests.get(resource, limits.get(resource))
        if value is not None:
            total += _amount(container, resource, value)
    return total


def _amount(container: Object, resource: str, value: object) -> Decimal:
    where = f"container {container.get('name')}: {resource}"
    try:
        amount = parse_quantity(value)
    except InvalidQuantityError as error:
        raise InvalidPodError("InvalidQuantity", f"{where}: {error}") from None
    if amount < 0:
        raise InvalidPodError("InvalidQuantity", f"{where} is negative")
    return amount


def _section(container: Object, section: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (container.get("resources") or {}).get(section) or {}
    return found
