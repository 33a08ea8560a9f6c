"""What a decision is made from: the request of one Pod and the supply of each provider."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from nebula.domain.candidate import Shape
from nebula.domain.nodepool import ProviderEntry
from nebula.domain.workload import RestartPolicy
from nebula.placement.catalogue import Catalogue
from nebula.providers.base import Capabilities, RegionSet


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """One Pod's wish, free of Kubernetes words.

    ``publishes`` tells whether any port would be published. ``exclusions`` are the candidate keys
    that refused this claim for reasons of its own. ``budget_left`` is USD per hour that the
    NodePool's budget still holds, None without a budget; ``over_budget`` are candidate keys whose
    reservation the ledger refused since that number was read. ``waiting_since`` is when the Pod began
    to wait (for the back-off).
    """

    shape: Shape
    claim_id: str = ""
    restart_policy: RestartPolicy = RestartPolicy.ALWAYS
    publishes: bool = False
    exclusions: frozenset[str] = frozenset()
    budget_left: Decimal | None = None
    over_budget: frozenset[str] = frozenset()
    waiting_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class ProviderSupply:
    """One entry of the NodePool's ``providers`` with all that is known of that provider now.

    ``unconfigured`` holds the reason when the provider has no key here; then nothing else is
    known. ``node_not_ready`` and ``node_unsuitable`` say why its virtual Node cannot take the Pod;
    empty when it can. ``note`` is what the price list says of itself (a fallback's reason).
    """

    entry: ProviderEntry
    capabilities: Capabilities | None = None
    catalogue: Catalogue = field(default_factory=lambda: Catalogue(()))
    region_sets: tuple[RegionSet, ...] = ()
    unconfigured: str = ""
    node_not_ready: str = ""
    node_unsuitable: str = ""
    note: str = ""

    @property
    def name(self) -> str:
        """The provider's name."""
        return self.entry.name
