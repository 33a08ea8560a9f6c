"""Clusters that were configured and are not any more, while claims of theirs live.

Without its parameter a cluster is in no list, so nobody would miss it: its claims would hold what they rented in
silence. What is remembered is one note of names; it is written only when the names change.
"""

from __future__ import annotations

from nebula.domain.claim import Claim
from nebula.domain.unreadable import UnreadableClaim
from nebula.workflows.readable import tell_unreadable
from nebula.workflows.services import Services

_NOTE = "clusters"
#: Claims named in one log line.
_NAMED = 20


def missing_clusters(services: Services) -> frozenset[str]:
    """Names without a parameter that claims still live in; each alarms and says which claims it holds.

    Nothing is reclaimed for them: the parameter may come back. ``abandon`` ends their claims for good.
    """
    now = services.clock.now()
    configured = set(services.clusters.names())
    known = set(filter(None, (services.sightings.recall(_NOTE) or "").split(",")))
    held = {name: claims for name in sorted(known - configured) if (claims := _living(services, name))}
    for name, claims in held.items():
        _alarm(services, name, claims)
    if known != configured | held.keys():
        services.sightings.note(_NOTE, ",".join(sorted(configured | held.keys())), now)
    return frozenset(held)


def _living(services: Services, name: str) -> list[Claim | UnreadableClaim]:
    unreadable: list[UnreadableClaim] = []
    live = list(services.claims.live(name, unreadable))
    tell_unreadable(services, name, unreadable)
    return [*live, *unreadable]


def _alarm(services: Services, name: str, claims: list[Claim | UnreadableClaim]) -> None:
    instances = [claim.instance_id for claim in claims if isinstance(claim, Claim) and claim.instance_id is not None]
    services.telemetry.error(
        "cluster not configured",
        cluster=name,
        claims=[claim.claim_id for claim in claims[:_NAMED]],
        of=len(claims),
        instances=instances[:_NAMED],
    )
    services.telemetry.count("ClusterUnknown", cluster=name)
