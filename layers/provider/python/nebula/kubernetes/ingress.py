"""Which container ports are published: what the NodePool opens, narrowed by the Pod (docs/placement.md)."""

from __future__ import annotations

import re
from typing import Final

from nebula.domain.nodepool import IngressMode, NodePool
from nebula.domain.workload import PublishedPort
from nebula.kubernetes import names
from nebula.kubernetes.pod import Pod
from nebula.kubernetes.workload_errors import InvalidPodError

_LIST: Final = re.compile(r"[0-9]{1,5}( *, *[0-9]{1,5})*", re.ASCII)


def published_ports(pod: Pod, pool: NodePool) -> tuple[PublishedPort, ...]:
    """Exactly the ports to publish, without repetition; empty when ingress is closed.

    ``FirstPort`` is the first declared container port; ``Ports`` are the NodePool's, declared or not.
    The Pod's annotation takes ports away and never adds one. InvalidPodError when it cannot be read.
    """
    kept = narrowing(pod)
    return tuple(port for port in _opened(pod, pool) if kept is None or port.port in kept)


def closed_ports(pod: Pod, pool: NodePool) -> tuple[int, ...]:
    """Ports that the annotation asks for and the NodePool does not open."""
    opened = {port.port for port in _opened(pod, pool)}
    return tuple(sorted((narrowing(pod) or frozenset()) - opened))


def narrowing(pod: Pod) -> frozenset[int] | None:
    """The annotation's ports; None without one, empty for ``none``."""
    text = pod.annotations.get(names.ANNOTATION_INGRESS_PORTS)
    if text is None:
        return None
    if text.strip() == "none":
        return frozenset()
    ports = [int(part) for part in text.split(",")] if _LIST.fullmatch(text.strip()) else []
    if not ports or not all(1 <= port <= 65535 for port in ports):
        expected = f"annotation {names.ANNOTATION_INGRESS_PORTS}: expected none, or ports like 8080,9000"
        raise InvalidPodError("InvalidIngressPorts", expected)
    return frozenset(ports)


def declared_ports(pod: Pod) -> tuple[int, ...]:
    """The container ports in declared order, without repetition."""
    found = [port.get("containerPort") for container in pod.containers for port in container.get("ports") or []]
    return tuple(dict.fromkeys(port for port in found if isinstance(port, int)))


def _opened(pod: Pod, pool: NodePool) -> tuple[PublishedPort, ...]:
    match pool.ingress.mode:
        case IngressMode.FIRST_PORT:
            return tuple(PublishedPort(port=port) for port in declared_ports(pod)[:1])
        case IngressMode.PORTS:
            return tuple(dict.fromkeys(pool.ingress.ports))
        case _:
            return ()
