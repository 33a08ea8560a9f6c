"""What one look sees of every cluster and every provider, and how much of it may be believed.

Silence, another cluster behind the same name, another account behind a new key, and a mass vanishing are
*unknown*: no absence is concluded from them, and each raises an alarm.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property

from nebula.domain.claim import Claim, Phase
from nebula.domain.instance import InstanceListing
from nebula.domain.unreadable import UnreadableClaim
from nebula.events.batch import where
from nebula.kubernetes.api import ForbiddenError, KubernetesApi, KubernetesError
from nebula.kubernetes.names import ENABLED_SELECTOR
from nebula.kubernetes.pod import Pod
from nebula.kubernetes.pod_structure import MalformedPodError
from nebula.lifecycle.assessment import vanished_at_once
from nebula.lifecycle.observation import ABSENCE_GAP, BELIEVED_AFTER, absence_counts, is_strange, sighting
from nebula.providers.base import Provider
from nebula.providers.errors import ProviderError
from nebula.workflows.accounts import account_of, is_of, learn
from nebula.workflows.readable import tell_unreadable
from nebula.workflows.services import Services

#: Claims that hold an instance that nobody asked the end of.
HELD = frozenset({Phase.PROVISIONED, Phase.RELEASING, Phase.RELEASED})


@dataclass
class ClusterView:
    """One cluster's Pods by uid; ``pods`` is None when the cluster could not be listed (unknown).

    ``uid`` is its identity as read in this look, "" where our role may not read it. ``unreadable`` are live claims that
    only a newer release can read: they hold what they hold, and nothing is concluded about it.
    """

    api: KubernetesApi
    claims: list[Claim] = field(default_factory=list)
    pods: dict[str, Pod] | None = None
    uid: str = ""
    unreadable: list[UnreadableClaim] = field(default_factory=list)

    def is_home_of(self, claim: Claim) -> bool:
        """Whether this is the cluster in which the claim's Pod was found."""
        return not (self.uid and claim.cluster_uid) or self.uid == claim.cluster_uid

    def pods_for(self, claim: Claim) -> Mapping[str, Pod] | None:
        """The Pods among which the claim's would be; None: unknown."""
        return self.pods if self.is_home_of(claim) else None


@dataclass(frozen=True)
class ProviderView:
    """A provider, its listing, and what the listing may be believed about.

    ``strangers`` are accounts of attempts that are not known to be the account that was listed;
    ``doubted`` that too many instances vanished at once: then each absence must hold for longer, be confirmed
    by a read at its beginning and its end, and be that of the very account in which the instance was made.
    """

    provider: Provider
    listing: InstanceListing
    account: str = ""
    strangers: frozenset[str] = frozenset()
    doubted: bool = False

    def listing_for(self, claim: Claim) -> InstanceListing:
        """The listing, as far as it proves anything about one claim that has made an attempt."""
        account = claim.attempts[-1].account
        if account in self.strangers or (self._doubts(claim) and not account):
            return self._sights
        return self.listing

    def gap_for(self, claim: Claim) -> timedelta:
        """How long a claim's instance must have been absent before it is believed to be lost."""
        return BELIEVED_AFTER if self._doubts(claim) else ABSENCE_GAP

    def _doubts(self, claim: Claim) -> bool:
        return self.doubted and claim.phase in HELD

    @cached_property
    def _sights(self) -> InstanceListing:
        return self.listing.proving_nothing("not to be believed")


def view_clusters(services: Services, unknown: set[str]) -> dict[str, ClusterView]:
    """Live claims and Pods of every cluster; the names of the unknown ones are added to ``unknown``.

    A cluster that does not answer has ``pods`` None; one whose parameter cannot be used is left out.
    """
    names = list(services.clusters.names())
    if not names:
        return {}
    with ThreadPoolExecutor(max_workers=min(len(names), _VIEWERS)) as pool:
        views = list(pool.map(lambda name: _view_cluster(services, name, unknown), names))
    return {name: view for name, view in zip(names, views, strict=True) if view is not None}


def _view_cluster(services: Services, name: str, unknown: set[str]) -> ClusterView | None:
    """One cluster; at the same time as the others, so that one that hangs costs them nothing."""
    try:
        api = services.clusters.get(name)
    except KubernetesError as error:
        _cluster_unknown(services, name, str(error), unknown)
        return None
    except KeyError:
        # Its parameter went between two reads: the sweep misses it where claims live.
        return None
    unreadable: list[UnreadableClaim] = []
    view = ClusterView(api, list(services.claims.live(name, unreadable)), unreadable=unreadable)
    tell_unreadable(services, name, unreadable)
    try:
        view.uid = _uid(view)
        listed = view.api.list_pods(label_selector=ENABLED_SELECTOR)
        view.pods = {pod.uid: pod for pod in map(Pod.from_object, listed)}
    except (KubernetesError, MalformedPodError) as error:
        _cluster_unknown(services, name, str(error), unknown)
    except Exception as error:  # noqa: BLE001 - what we cannot read of one cluster must not blind us to the others
        services.telemetry.count("Defects")
        _cluster_unknown(services, name, where(error), unknown)
    strange = [claim.claim_id for claim in view.claims if not view.is_home_of(claim)]
    if strange:
        why = f"another cluster answers: its kube-system UID is not that of {len(strange)} claims' cluster"
        _cluster_unknown(services, name, why, unknown, claims=strange[:_NAMED])
    return view


#: Claims named in one log line.
_NAMED = 20
#: Clusters read at once.
_VIEWERS = 8


def _uid(view: ClusterView) -> str:
    """The cluster's identity; not asked for while nothing is compared with it."""
    if not any(claim.cluster_uid for claim in view.claims):
        return ""
    try:
        return view.api.cluster_uid()
    except ForbiddenError:
        return ""


def _cluster_unknown(services: Services, name: str, why: str, unknown: set[str], claims: Sequence[str] = ()) -> None:
    services.telemetry.error("cluster unknown", cluster=name, error=why, claims=list(claims))
    services.telemetry.count("ClusterUnknown", cluster=name)
    unknown.add(f"cluster/{name}")


def view_providers(
    services: Services, names: Iterable[str], claims: Iterable[Claim], unknown: set[str]
) -> dict[str, ProviderView]:
    """One listing per provider; one that fails is left out: unknown, and added to ``unknown``."""
    by_provider: dict[str, list[Claim]] = defaultdict(list)
    for claim in claims:
        if claim.unconfirmed:
            by_provider[claim.attempts[-1].candidate.provider].append(claim)
    views: dict[str, ProviderView] = {}
    for name in names:
        try:
            provider = services.providers.get(name)
            account = account_of(services, provider)
            listing = provider.list_instances()
        except ProviderError as error:
            _provider_unknown(services, name, str(error), unknown, by_provider[name])
            continue
        except Exception as error:  # noqa: BLE001 - what we cannot read of one provider must not blind us to the others
            services.telemetry.count("Defects")
            _provider_unknown(services, name, where(error), unknown, by_provider[name])
            continue
        for scope, reason in listing.failed_scopes.items():
            services.telemetry.warning("scope unknown", provider=name, scope=scope, error=reason)
            unknown.add(f"provider/{name}/{scope}".rstrip("/"))
        views[name] = _believed(services, ProviderView(provider, listing, account), by_provider[name], unknown)
    return views


def _believed(services: Services, view: ProviderView, claims: list[Claim], unknown: set[str]) -> ProviderView:
    """The view with what must not be believed of it."""
    name = view.provider.name
    seen = {claim.claim_id: _sees(services, claim, view) for claim in claims}
    for claim in claims:
        if seen[claim.claim_id]:
            learn(services, claim.attempts[-1], view.account)
    samples = {claim.attempts[-1].account: claim.attempts[-1] for claim in claims}
    strangers = frozenset(of for of, attempt in samples.items() if not is_of(services, attempt, view.account))
    if strangers:
        why = "its account or key changed, and it shows nothing of what we hold"
        _provider_unknown(services, name, why, unknown, [c for c in claims if c.attempts[-1].account in strangers])
    strange = [c for c in claims if is_strange(c.attempts[-1], view.listing, services.installation, c.claim_id)]
    if strange:
        _provider_unknown(services, name, "instances that we hold do not carry our mark", unknown, strange)
    held = [claim for claim in claims if claim.phase in HELD and claim.attempts[-1].account not in strangers]
    delay = view.provider.capabilities.visibility_delay
    missing = [
        claim for claim in held if not seen[claim.claim_id] and absence_counts(claim.attempts[-1], view.listing, delay)
    ]
    doubted = vanished_at_once(len(held), len(missing))
    if doubted:
        why = f"{len(missing)} of {len(held)} instances vanished at once"
        _provider_unknown(services, name, why, unknown, missing)
    return ProviderView(view.provider, view.listing, view.account, strangers, doubted)


def _sees(services: Services, claim: Claim, view: ProviderView) -> bool:
    return sighting(claim.attempts[-1], view.listing, services.installation, claim.claim_id) is not None


def _provider_unknown(services: Services, name: str, why: str, unknown: set[str], claims: Sequence[Claim]) -> None:
    named = [claim.claim_id for claim in claims[:_NAMED]]
    services.telemetry.error("provider unknown", provider=name, error=why, claims=named, of=len(claims))
    services.telemetry.count("ProviderUnknown", provider=name)
    unknown.add(f"provider/{name}")
