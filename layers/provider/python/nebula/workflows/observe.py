"""One look at every provider and cluster, and what follows from it: the status loop's core.

One listing per provider and one list of Pods per cluster, however many claims there are. Silence of
either changes nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime

from nebula.domain.claim import Claim
from nebula.lifecycle.assessment import Assessment, assess
from nebula.lifecycle.observation import sighting
from nebula.lifecycle.transitions import with_attempt
from nebula.workflows.by_id import ReadsById
from nebula.workflows.nodes import Beats, remake_nodes
from nebula.workflows.one_claim import one_claim
from nebula.workflows.services import Services
from nebula.workflows.settle import settle
from nebula.workflows.views import ClusterView, ProviderView, view_clusters, view_providers

#: Claims handled at once: writes to the ledger and the cluster dominate, not computation.
WORKERS = 8
#: The note of the claim at which a look stopped, "" after one that reached all.
_RESUME = "look/next"


@dataclass(frozen=True)
class Observation:
    """What one look found: the clusters' and providers' views, and whether time ran out.

    ``unknown`` names what nothing may be concluded about: ``cluster/<name>``, ``provider/<name>``.
    """

    clusters: dict[str, ClusterView]
    providers: dict[str, ProviderView]
    handled: int
    cut_short: bool
    unknown: set[str] = field(default_factory=set)


def look(
    services: Services, *, until: datetime, extra_providers: Iterable[str] = (), beats: Beats | None = None
) -> Observation:
    """List once, judge every live claim, write what changed, project Pod status.

    ``until`` is when nothing new is begun; the next look goes on where this one stopped. Claims are judged in the
    order of their ids; a look that follows a whole one begins at a place that moves with the clock.
    """
    unknown: set[str] = set()
    clusters = view_clusters(services, unknown)
    if beats is not None:
        remake_nodes(services, clusters, beats.missing)
    claims = sorted((claim for view in clusters.values() for claim in view.claims), key=lambda c: c.claim_id)
    names = {c.attempts[-1].candidate.provider for c in claims if c.unconfirmed} | set(extra_providers)
    providers = view_providers(services, sorted(names), claims, unknown)
    resume = services.sightings.recall(_RESUME) or ""
    queue = _in_turn(claims, resume, services.clock.now())
    by_id = ReadsById(services)
    handled, stopped_at = 0, ""

    def judge(claim: Claim) -> bool:
        if services.clock.now() >= until:
            return False
        _judge(services, claim, clusters, providers, by_id)
        return True

    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        for start in range(0, len(queue), WORKERS * 4):
            batch = queue[start : start + WORKERS * 4]
            done = list(pool.map(judge, batch))
            handled += sum(done)
            if not all(done):
                stopped_at = batch[done.index(False)].claim_id
                break
    if stopped_at:
        left = len(queue) - handled
        services.telemetry.warning("look cut short", handled=handled, left=left, next_claim=stopped_at)
    if stopped_at != resume:
        services.sightings.note(_RESUME, stopped_at, services.clock.now())
    return Observation(clusters, providers, handled, bool(stopped_at), unknown)


def _in_turn(claims: list[Claim], resume: str, now: datetime) -> list[Claim]:
    """The claims, beginning at ``resume`` where the last look stopped, else at a place that moves with the clock."""
    if not claims:
        return claims
    start = bisect_left(claims, resume, key=lambda claim: claim.claim_id) if resume else int(now.timestamp())
    start %= len(claims)
    return claims[start:] + claims[:start]


def _judge(
    services: Services,
    claim: Claim,
    clusters: dict[str, ClusterView],
    providers: dict[str, ProviderView],
    by_id: ReadsById,
) -> None:
    """Judge one claim; what goes wrong with it must not stop the others."""
    cluster = clusters[claim.cluster]
    view = providers.get(claim.attempts[-1].candidate.provider) if claim.attempts else None
    with one_claim(services, claim, "claim not settled"):
        assessment = None if view is None else _assessed(services, claim, view, by_id)
        provider = None if view is None else view.provider
        settle(services, claim, assessment, provider, cluster.api, cluster.pods_for(claim))


def _assessed(services: Services, claim: Claim, view: ProviderView, by_id: ReadsById) -> Assessment:
    """The assessment; an instance that a new key shows is from then on known under that key."""
    listing, capabilities = by_id.listing_for(claim, view), view.provider.capabilities
    now, gap = services.clock.now(), view.gap_for(claim)
    assessment = assess(claim, listing, capabilities, services.installation, now, gap=gap)
    attempt = assessment.claim.attempts[-1]
    shown = sighting(claim.attempts[-1], listing, services.installation, claim.claim_id) is not None
    if not shown or attempt.account in ("", view.account):
        return assessment
    renamed = with_attempt(assessment.claim, account=view.account)
    return replace(assessment, claim=assessment.claim.model_copy(update={"attempts": renamed}))
