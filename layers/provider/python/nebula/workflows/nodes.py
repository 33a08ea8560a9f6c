"""The virtual Nodes: beaten while claims live, removed when long unused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import NamedTuple

from nebula.kubernetes.api import ClusterUnavailableError, KubernetesApi, KubernetesError, Object
from nebula.kubernetes.node import beat, is_ours, node_name, remove_node
from nebula.workflows.services import Services
from nebula.workflows.views import ClusterView

#: A Node stays this long after the last Pod was bound to it and the last claim named it.
IDLE_NODE = timedelta(minutes=10)
_BEATERS = 16


class Beats(NamedTuple):
    """What a round of beats came to.

    ``needless``: every Node had just been beaten, somebody else did this tick's work. ``missing``: where a provider has
    no Node.
    """

    needless: bool = False
    missing: tuple[tuple[KubernetesApi, str], ...] = ()


def beat_nodes(services: Services, clusters: Sequence[str], providers: Sequence[str], *, min_age: timedelta) -> Beats:
    """Beat every Node of these clusters in parallel; the Lease's own time is the memory.

    One that was beaten less than ``min_age`` ago is left. A cluster that does not answer counts as not beaten: the
    look goes on.
    """
    jobs = [(api, provider) for api in _reached(services, clusters) for provider in providers]
    if not jobs:
        return Beats()
    with ThreadPoolExecutor(max_workers=_BEATERS) as pool:
        beaten = list(pool.map(lambda job: _beat(services, job[0], job[1], min_age), jobs))
    known = [result for result in beaten if result is not None]
    missing = tuple(job for job, result in zip(jobs, beaten, strict=True) if result is None)
    return Beats(bool(known) and not any(known), missing)


def remake_nodes(
    services: Services, views: Mapping[str, ClusterView], missing: Iterable[tuple[KubernetesApi, str]]
) -> None:
    """Make a Node again that live claims name and that somebody deleted, for Kubernetes soon ends its Pods.

    Its Lease went with it. A claim that cannot be read may name any.
    """
    for api, provider in missing:
        view = views.get(api.name)
        if view is None or not (view.unreadable or node_name(provider) in _named(view)):
            continue
        try:
            beat(api, provider, services.clock.now(), min_age=timedelta(0))
        except KubernetesError as error:
            services.telemetry.error("node not made again", cluster=api.name, provider=provider, error=str(error))


def _reached(services: Services, clusters: Sequence[str]) -> list[KubernetesApi]:
    """The clients of the clusters that have a usable parameter; the others must not stop these."""
    reached = []
    for name in clusters:
        try:
            reached.append(services.clusters.get(name))
        except (KubernetesError, KeyError) as error:
            services.telemetry.error("nodes not beaten", cluster=name, error=str(error))
    return reached


def _beat(services: Services, api: KubernetesApi, provider: str, min_age: timedelta) -> bool | None:
    """Whether this call beat the Node; None where the provider has no Node in this cluster."""
    try:
        if api.get_lease(node_name(provider)) is None and api.get_node(node_name(provider)) is None:
            return None
        return beat(api, provider, services.clock.now(), min_age=min_age)
    except KubernetesError as error:
        services.telemetry.error("node not beaten", cluster=api.name, provider=provider, error=str(error))
        return True


def _named(view: ClusterView) -> set[str]:
    """The Nodes of the providers where live claims of a cluster were placed, or may still have something."""
    placed = {node_name(claim.candidate.provider) for claim in view.claims if claim.candidate is not None}
    return placed | {node_name(attempt.candidate.provider) for claim in view.claims for attempt in claim.unconfirmed}


def retire_nodes(services: Services, view: ClusterView) -> None:
    """Remove the Nodes that no live claim names and to which no Pod was bound for ``IDLE_NODE``.

    Deleting a Node makes Kubernetes end every Pod bound to it, so any bound Pod, terminal ones included, keeps it, and
    a claim that cannot be read keeps all. The first idle sight is remembered; a use in between forgets it.
    """
    if view.pods is None:
        return
    bound = {pod.node_name for pod in view.pods.values() if pod.node_name is not None}
    named = _named(view)
    for provider in services.providers.names():
        try:
            in_use = bool(view.unreadable) or node_name(provider) in bound | named
            _retire(services, view.api, provider, in_use=in_use)
        except KubernetesError as error:
            services.telemetry.warning("node not retired", cluster=view.api.name, provider=provider, error=str(error))
            if isinstance(error, ClusterUnavailableError):
                return


def _retire(services: Services, api: KubernetesApi, provider: str, *, in_use: bool) -> None:
    subject = f"idle-node/{api.name}/{provider}"
    if in_use:
        if services.sightings.known(subject, services.clock.now()):
            services.sightings.forget(subject)
        return
    node = api.get_node(node_name(provider))
    if node is None or not is_ours(node):
        return
    now = services.clock.now()
    first = services.sightings.first_seen(subject, now)
    if now - first < IDLE_NODE:
        return
    if any(map(_keeps_node, api.list_pods(field_selector=f"spec.nodeName={node_name(provider)}"))):
        return
    remove_node(api, provider)
    services.sightings.forget(subject)
    services.telemetry.info("node removed", cluster=api.name, provider=provider)


def _keeps_node(pod: Object) -> bool:
    """Whether a bound Pod would be missed. It never ran here, where it is a DaemonSet's that tolerates every taint.

    Nor is one missed that is being deleted: no kubelet would ever finish that, and the end of its Node does.
    """
    metadata = pod.get("metadata") or {}
    daemon = any(owner.get("kind") == "DaemonSet" for owner in metadata.get("ownerReferences") or [])
    return not daemon and not metadata.get("deletionTimestamp")
