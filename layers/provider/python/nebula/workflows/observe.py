"""One look at every provider and cluster, and what follows from it (design §7): the status loop's core.

One listing per provider and one list of Pods per cluster, however many claims there are. Silence of
either changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime

from nebula.domain.claim import Claim, Phase
from nebula.domain.instance import InstanceListing
from nebula.kubernetes.api import KubernetesApi, KubernetesError
from nebula.kubernetes.names import ENABLED_SELECTOR
from nebula.kubernetes.pod import Pod
from nebula.lifecycle.assessment import assess, vanished_at_once
from nebula.lifecycle.observation import absence_counts, sighting
from nebula.providers.base import Provider
from nebula.providers.errors import ProviderError
from nebula.stores.claims import ConflictError
from nebula.workflows.services import Services
from nebula.workflows.settle import settle

#: Claims handled at once: writes to the ledger and the cluster dominate, not computation.
WORKERS = 8
_HELD = frozenset({Phase.PROVISIONED, Phase.RELEASING, Phase.RELEASED})


@dataclass
class ClusterView:
    """One cluster's Pods by uid; ``pods`` is None when the cluster could not be listed (unknown)."""

    api: KubernetesApi
    claims: list[Claim] = field(default_factory=list)
    pods: dict[str, Pod] | None = None


@dataclass(frozen=True)
class ProviderView:
    """A provider and its listing."""

    provider: Provider
    listing: InstanceListing


@dataclass(frozen=True)
class Observation:
    """What one look found: the clusters' and providers' views, and whether time ran out."""

    clusters: dict[str, ClusterView]
    providers: dict[str, ProviderView]
    handled: int
    cut_short: bool


def look(services: Services, *, until: datetime, extra_providers: Iterable[str] = ()) -> Observation:
    """List once, judge every live claim, write what changed, project Pod status.

    ``until`` is when to stop cleanly; the next look goes on with what is left. Claims are judged in
    the order of their ids, starting at a place that moves with the clock, so that a look that is
    always cut short still reaches everybody.
    """
    clusters = view_clusters(services)
    claims = [claim for view in clusters.values() for claim in view.claims]
    names = {c.attempts[-1].candidate.provider for c in claims if c.attempts} | set(extra_providers)
    providers = view_providers(services, sorted(names), claims)
    queue = _rotated(claims, services.clock.now())
    handled = 0
    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        for start in range(0, len(queue), WORKERS * 4):
            if services.clock.now() >= until:
                services.telemetry.warning("look cut short", handled=handled, left=len(queue) - handled)
                return Observation(clusters, providers, handled, cut_short=True)
            batch = queue[start : start + WORKERS * 4]
            list(pool.map(lambda claim: _judge(services, claim, clusters, providers), batch))
            handled += len(batch)
    return Observation(clusters, providers, handled, cut_short=False)


def view_clusters(services: Services) -> dict[str, ClusterView]:
    """Live claims and Pods of every cluster.

    A cluster that does not answer has ``pods`` None; one whose parameter cannot be used is left out.
    """
    views: dict[str, ClusterView] = {}
    for name in services.clusters.names():
        try:
            api = services.clusters.get(name)
        except KubernetesError as error:
            _cluster_unknown(services, name, error)
            continue
        view = views[name] = ClusterView(api, sorted(services.claims.live(name), key=lambda c: c.claim_id))
        try:
            listed = view.api.list_pods(label_selector=ENABLED_SELECTOR)
            view.pods = {pod.uid: pod for pod in map(Pod.from_object, listed)}
        except KubernetesError as error:
            _cluster_unknown(services, name, error)
    return views


def _cluster_unknown(services: Services, name: str, error: KubernetesError) -> None:
    services.telemetry.error("cluster unknown", cluster=name, error=str(error))
    services.telemetry.count("ClusterUnknown", cluster=name)


def view_providers(services: Services, names: Iterable[str], claims: list[Claim]) -> dict[str, ProviderView]:
    """One listing per provider; one that fails, or that lost too much at once, is left out: unknown."""
    held: dict[str, list[Claim]] = defaultdict(list)
    for claim in claims:
        if claim.phase in _HELD and claim.instance_id is not None:
            held[claim.attempts[-1].candidate.provider].append(claim)
    views: dict[str, ProviderView] = {}
    for name in names:
        try:
            provider = services.providers.get(name)
            view = ProviderView(provider, provider.list_instances())
        except ProviderError as error:
            services.telemetry.error("provider unknown", provider=name, error=str(error))
            services.telemetry.count("ProviderUnknown", provider=name)
            continue
        for scope, reason in view.listing.failed_scopes.items():
            services.telemetry.warning("scope unknown", provider=name, scope=scope, error=reason)
        missing = sum(_is_missing(services, claim, view) for claim in held[name])
        if vanished_at_once(len(held[name]), missing):
            services.telemetry.error("instances vanished at once", provider=name, missing=missing, of=len(held[name]))
            services.telemetry.count("ProviderUnknown", provider=name)
            continue
        views[name] = view
    return views


def _is_missing(services: Services, claim: Claim, view: ProviderView) -> bool:
    attempt = claim.attempts[-1]
    if not absence_counts(attempt, view.listing, view.provider.capabilities.visibility_delay):
        return False
    return sighting(attempt, view.listing, services.installation, claim.claim_id) is None


def _rotated(claims: list[Claim], now: datetime) -> list[Claim]:
    if not claims:
        return claims
    start = int(now.timestamp()) % len(claims)
    return claims[start:] + claims[:start]


def _judge(
    services: Services, claim: Claim, clusters: dict[str, ClusterView], providers: dict[str, ProviderView]
) -> None:
    """Judge one claim; what goes wrong with it must not stop the others."""
    cluster = clusters[claim.cluster]
    view = providers.get(claim.attempts[-1].candidate.provider) if claim.attempts else None
    try:
        assessment = None
        if view is not None:
            capabilities = view.provider.capabilities
            assessment = assess(claim, view.listing, capabilities, services.installation, services.clock.now())
        settle(services, claim, assessment, view.provider if view else None, cluster.api, cluster.pods)
    except ConflictError:
        services.telemetry.info("claim moved meanwhile", claim_id=claim.claim_id)
    except (KubernetesError, ProviderError) as error:
        services.telemetry.warning("claim not settled", claim_id=claim.claim_id, error=str(error))
