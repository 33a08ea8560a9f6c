"""What a gated Pod asks for, together with the NodePool that says where it may go."""

from __future__ import annotations

from dataclasses import dataclass

from nebula.domain.candidate import Shape
from nebula.domain.nodepool import NodePool
from nebula.domain.workload import RestartPolicy
from nebula.kubernetes.api import KubernetesApi, Object
from nebula.kubernetes.names import LABEL_NODE_POOL
from nebula.kubernetes.node_pool import InvalidNodePoolError, node_pool_from_object, revision_of
from nebula.kubernetes.pod import Pod
from nebula.kubernetes.release import has_room
from nebula.kubernetes.workload import InvalidPodError, published_ports, refusals, shape_of


class NoWishError(Exception):
    """The Pod cannot be placed at all as things are. ``reason`` is CamelCase, as the Pod shows it.

    ``shape`` is what could be read of it, ``revision`` the spec of the NodePool that was looked at.
    ``again`` is False when only a change of the Pod can help, so that no timer needs to run; a change of
    the NodePool always wakes the claim.
    """

    revision = ""

    def __init__(self, reason: str, message: str, *, again: bool, shape: Shape | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.again = again
        self.shape = shape or Shape()


@dataclass(frozen=True)
class Wish:
    """A Pod that may be placed: its shape, its NodePool, and what else placement filters on."""

    pool: NodePool
    shape: Shape
    restart_policy: RestartPolicy
    publishes: bool


def read_wish(api: KubernetesApi, pod: Pod) -> Wish:
    """Read the Pod's NodePool from its own API server and the Pod's request from the Pod.

    Raises NoWishError with the reason that its owner can act on, and ``ClusterUnavailableError``.
    """
    pool_object = None if pod.node_pool is None else api.get_node_pool(pod.node_pool)
    try:
        shape = _shape(pod)
        return wish_of(pod, _pool(pod, pool_object, shape), shape)
    except NoWishError as error:
        error.revision = revision_of(pool_object)
        raise


def wish_of(pod: Pod, pool: NodePool, shape: Shape | None = None) -> Wish:
    """The wish of a Pod under a NodePool that is at hand. Raises NoWishError."""
    shape = _shape(pod) if shape is None else shape
    refused = refusals(pod)
    if refused:
        raise NoWishError("InvalidWorkload", f"cannot be honoured: {'; '.join(refused)}", again=False, shape=shape)
    if not has_room(pod):
        message = "metadata.annotations: no room for those that a release writes (the API server takes 256 KiB in all)"
        raise NoWishError("AnnotationsFull", message, again=True, shape=shape)
    try:
        ports = published_ports(pod, pool)
        restart_policy = RestartPolicy(pod.restart_policy)
    except InvalidPodError as error:
        raise NoWishError(error.reason, str(error), again=False, shape=shape) from None
    except ValueError:
        raise NoWishError("InvalidWorkload", "spec.restartPolicy: unknown", again=False, shape=shape) from None
    return Wish(pool=pool, shape=shape, restart_policy=restart_policy, publishes=bool(ports))


def _shape(pod: Pod) -> Shape:
    try:
        return shape_of(pod)
    except InvalidPodError as error:
        raise NoWishError(error.reason, str(error), again=False) from None


def _pool(pod: Pod, pool_object: Object | None, shape: Shape) -> NodePool:
    if pod.node_pool is None:
        raise NoWishError("NodePoolNotNamed", f"label {LABEL_NODE_POOL} is missing", again=False, shape=shape)
    if pool_object is None:
        raise NoWishError("NodePoolNotFound", f"NodePool {pod.node_pool} does not exist", again=True, shape=shape)
    try:
        return node_pool_from_object(pool_object)
    except InvalidNodePoolError as error:
        raise NoWishError("InvalidNodePool", f"NodePool {pod.node_pool}: {error}", again=True, shape=shape) from None
