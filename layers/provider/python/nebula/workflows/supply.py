"""What each provider of a NodePool could give a Pod now: offers, regions, and its virtual Node."""

from __future__ import annotations

from datetime import datetime

from nebula.clock import parse_time
from nebula.domain.candidate import Shape
from nebula.domain.nodepool import NodePool, ProviderEntry
from nebula.domain.offering import Offering
from nebula.kubernetes.api import ClusterUnavailableError, KubernetesApi, KubernetesError, Object
from nebula.kubernetes.node import NodeState, ensure_node, node_name, node_problems, state_of
from nebula.kubernetes.pod import Pod
from nebula.placement.catalogue import Catalogue
from nebula.placement.request import ProviderSupply
from nebula.providers.base import OfferingList, Provider, Providers
from nebula.providers.errors import ProviderError
from nebula.workflows.services import Services
from nebula.workflows.ticks import enqueue_ticks

MAX_CATALOGUES = 64
"""Arranged price lists kept in a warm process: one per provider and set of parameters in use."""

_catalogues: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[tuple[Offering, ...], Catalogue]] = {}


def provider_supply(providers: Providers, entry: ProviderEntry) -> ProviderSupply:
    """One entry's supply without regard to any cluster; ``unconfigured`` where no key can be found."""
    try:
        provider = providers.get(entry.name)
    except ProviderError as error:
        return ProviderSupply(entry, unconfigured=str(error))
    offerings = provider.offerings()
    return ProviderSupply(
        entry,
        capabilities=provider.capabilities,
        catalogue=arranged(provider, offerings, entry),
        region_sets=provider.regions(entry.regions),
        note=offerings.note,
    )


def arranged(provider: Provider, offerings: OfferingList, entry: ProviderEntry) -> Catalogue:
    """The offerings that hold for the entry's parameters; one list in a warm process is arranged only once."""
    key = (provider.name, tuple(sorted(entry.parameters.items())))
    known = _catalogues.get(key)
    if known is not None and known[0] is offerings.offerings:
        return known[1]
    catalogue = Catalogue(row for row in offerings.offerings if row.holds_for(entry.parameters))
    if len(_catalogues) >= MAX_CATALOGUES:
        _catalogues.clear()
    _catalogues[key] = (offerings.offerings, catalogue)
    return catalogue


def serves(supply: ProviderSupply, shape: Shape) -> bool:
    """Whether the provider sells the shape, or a larger one, anywhere at all."""
    return supply.capabilities is not None and bool(supply.catalogue.lineup(shape, str(shape)).counts)


def with_node(supply: ProviderSupply, pod: Pod, state: NodeState) -> ProviderSupply:
    """The supply with what its virtual Node says of the Pod."""
    if not state.ready or state.object is None:
        return _replace(supply, node_not_ready=state.problem or "its virtual Node is not Ready")
    problems = node_problems(pod, state.object)
    return _replace(supply, node_unsuitable="; ".join(problems)) if problems else supply


def cluster_supplies(
    services: Services, api: KubernetesApi, pod: Pod, pool: NodePool, shape: Shape
) -> tuple[ProviderSupply, ...]:
    """Every entry's supply, the Nodes of those that sell the shape created or repaired where need be.

    Raises ``ClusterUnavailableError``; any other refusal of the API server makes that provider's Node
    not ready, with the reason.
    """
    states: dict[str, NodeState] = {}
    supplies = []
    for entry in pool.providers:
        supply = provider_supply(services.providers, entry)
        if serves(supply, shape):
            if entry.name not in states:
                states[entry.name] = _node(services, api, entry.name)
            supply = with_node(supply, pod, states[entry.name])
        supplies.append(supply)
    return tuple(supplies)


def _node(services: Services, api: KubernetesApi, provider: str) -> NodeState:
    """The provider's Node: read while somebody beats it, else made Ready, with the first ticks behind it."""
    now = services.clock.now()
    try:
        node = _beaten(api, provider, now - services.tick_interval * 2)
        if node is not None:
            return NodeState(ready=True, object=node)
        state = ensure_node(api, provider, now)
    except ClusterUnavailableError:
        raise
    except KubernetesError as error:
        return NodeState(ready=False, problem=f"its virtual Node could not be written: {error}")
    enqueue_ticks(services)
    return state


def _beaten(api: KubernetesApi, provider: str, since: datetime) -> Object | None:
    """The Node if it is Ready and its Lease was renewed after ``since``.

    Then it is only read: a placement that renewed the Lease would make the status loop's tick believe
    that another tick had done its work.
    """
    lease = api.get_lease(node_name(provider))
    renewed = parse_time((lease or {}).get("spec", {}).get("renewTime"))
    if renewed is None or renewed < since:
        return None
    node = api.get_node(node_name(provider))
    return node if node is not None and state_of(node).ready else None


def _replace(supply: ProviderSupply, *, node_not_ready: str = "", node_unsuitable: str = "") -> ProviderSupply:
    return ProviderSupply(
        supply.entry,
        capabilities=supply.capabilities,
        catalogue=supply.catalogue,
        region_sets=supply.region_sets,
        node_not_ready=node_not_ready,
        node_unsuitable=node_unsuitable,
        note=supply.note,
    )
