"""From a Pod's fields to a provider-neutral ``Workload``.

Every field is met by the table of ``workload_fields``: honoured, changed, ignored with a word, or
refused by its name before anything is bought.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nebula.domain.nodepool import IngressMode, NodePool
from nebula.domain.workload import RestartPolicy, Workload
from nebula.kubernetes.api import KubernetesApi, Object
from nebula.kubernetes.environment import Environment
from nebula.kubernetes.field_walk import findings
from nebula.kubernetes.ingress import closed_ports, declared_ports, published_ports
from nebula.kubernetes.injected import without_injected
from nebula.kubernetes.pod import Pod
from nebula.kubernetes.shape import shape_of
from nebula.kubernetes.workload_errors import InvalidPodError, WaitingForReferenceError
from nebula.kubernetes.workload_fields import Treatment

__all__ = [
    "InvalidPodError",
    "Translation",
    "WaitingForReferenceError",
    "published_ports",
    "refusals",
    "shape_of",
    "translate",
]


@dataclass(frozen=True)
class Translation:
    """A Pod as a provider is asked to run it, and what was ignored on the way, one word each."""

    workload: Workload
    ignored: tuple[str, ...] = ()


def refusals(pod: Pod) -> tuple[str, ...]:
    """The fields that cannot be honoured, by name and with the reason; empty when all can."""
    spec, _ = without_injected(pod.spec)
    refused = [str(finding) for finding in findings(spec) if finding.treatment is Treatment.REFUSED]
    if len(pod.containers) != 1:
        listed = ", ".join(str(container.get("name")) for container in pod.containers)
        refused.insert(0, f"spec.containers (one container per Pod, found: {listed or 'none'})")
    return tuple(dict.fromkeys(refused))


def translate(pod: Pod, pool: NodePool, api: KubernetesApi, *, node_name: str | None = None) -> Translation:
    """The Pod's one container, resolved; Secrets and ConfigMaps are read from its own namespace.

    ``node_name`` is the virtual Node that the Pod will be bound to, for ``spec.nodeName`` in the
    environment. Raises InvalidPodError (the Pod must change; its message names fields and no value),
    WaitingForReferenceError (something is not there yet), and what the API raises.
    """
    refused = refusals(pod)
    if refused:
        raise InvalidPodError("UnsupportedField", "cannot be honoured: " + "; ".join(refused))
    spec, words = without_injected(pod.spec)
    container: Object = spec["containers"][0]
    shape, ports = shape_of(pod), published_ports(pod, pool)
    environment = Environment(pod, container, api, node_name)
    values = environment.resolve()
    workload = Workload(
        image=_image(container),
        command=environment.expanded(_texts(container, "command")),
        args=environment.expanded(_texts(container, "args")),
        env=values,
        ports=ports,
        shape=shape,
        restart_policy=_restart_policy(pod),
        egress=pool.egress,
        active_deadline_seconds=_seconds(spec, "activeDeadlineSeconds"),
        termination_grace_period_seconds=_grace(spec),
        working_dir=_working_dir(container),
    )
    return Translation(workload, (*words, *_ignored(spec), *_ingress_words(pod, pool)))


def _ignored(spec: Object) -> tuple[str, ...]:
    loud = [found for found in findings(spec) if found.treatment is Treatment.IGNORED and not found.quiet]
    return tuple(dict.fromkeys(str(finding) for finding in loud))


def _ingress_words(pod: Pod, pool: NodePool) -> tuple[str, ...]:
    closed = ", ".join(str(port) for port in closed_ports(pod, pool))
    if closed:
        return (f"ports {closed} of annotation ingress-ports (not opened by NodePool {pool.name})",)
    if pool.ingress.mode is IngressMode.FIRST_PORT and not declared_ports(pod):
        return ("ingress FirstPort (the container declares no port)",)
    return ()


def _image(container: Object) -> str:
    image = container.get("image")
    if not isinstance(image, str) or not image or any(character.isspace() for character in image):
        raise InvalidPodError("InvalidImage", f"container {container.get('name')}: image is not a reference")
    return image


def _working_dir(container: Object) -> str | None:
    found = container.get("workingDir") or None
    if found is None or isinstance(found, str):
        return found
    raise InvalidPodError("InvalidField", f"container {container.get('name')}: workingDir is not a path")


def _texts(container: Object, key: str) -> list[str] | None:
    """A list of texts; an empty one means the image's own, as for a kubelet."""
    found = container.get(key)
    if not found:
        return None
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise InvalidPodError("InvalidField", f"container {container.get('name')}: {key} is not a list of texts")
    if any("\0" in item for item in found):
        raise InvalidPodError("InvalidField", f"container {container.get('name')}: {key} holds a NUL character")
    return found


def _restart_policy(pod: Pod) -> RestartPolicy:
    try:
        return RestartPolicy(pod.restart_policy)
    except ValueError:
        raise InvalidPodError("InvalidField", "spec.restartPolicy is none of Always, OnFailure, Never") from None


def _seconds(spec: Object, key: str) -> int | None:
    value: Any = spec.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidPodError("InvalidField", f"spec.{key} is not a number of seconds")
    return value


def _grace(spec: Object) -> int:
    grace = _seconds(spec, "terminationGracePeriodSeconds")
    return 30 if grace is None else grace
