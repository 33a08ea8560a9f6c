"""The NodePool: the policy object, as a validated model.

Vocabulary and defaults of ``nebula.inftyai.com/v1alpha1`` (InftyAI/Nebula ``api/v1alpha1/nodepool_types.go``),
plus what ``cluster/crds/nodepools.yaml`` adds to it.
"""

from datetime import timedelta
from decimal import Decimal
from enum import StrEnum

from pydantic import Field

from nebula.domain.base import Model
from nebula.domain.candidate import CapacityType
from nebula.domain.workload import Egress, PublishedPort


class Strategy(StrEnum):
    """How candidates are ranked within a tier."""

    ORDERED = "Ordered"
    LOWEST_PRICE = "LowestPrice"
    WEIGHTED = "Weighted"


class IngressMode(StrEnum):
    """Which container ports are published: none, the first declared one, or those listed."""

    NONE = "None"
    FIRST_PORT = "FirstPort"
    PORTS = "Ports"


class IngressAuthentication(StrEnum):
    """Who authenticates callers of a published port."""

    PROVIDER = "Provider"
    APPLICATION = "Application"


class Ingress(Model):
    """``spec.ingress``; closed unless the NodePool opens it."""

    mode: IngressMode = IngressMode.NONE
    ports: tuple[PublishedPort, ...] = ()
    authentication: IngressAuthentication = IngressAuthentication.PROVIDER


class ProviderEntry(Model):
    """One entry of ``spec.providers``."""

    name: str
    weight: int | None = Field(default=None, ge=1)
    regions: tuple[str, ...] = ()
    parameters: dict[str, str] = Field(default_factory=dict)


class Failover(Model):
    """``spec.failover``: how long a refusal is remembered and how long each stage may take."""

    blocklist_ttl: timedelta = timedelta(seconds=30)
    reserve_deadline: timedelta = timedelta(minutes=5)
    release_deadline: timedelta = timedelta(minutes=5)
    start_deadline: timedelta = timedelta(minutes=20)


class NodePool(Model):
    """A NodePool's spec with its name and resourceVersion. Money is USD per hour.

    ``revision`` moves when the spec does and not when the status does.

    Built from the API object by ``nebula.kubernetes.node_pool`` (camelCase and Go durations there).
    """

    name: str
    resource_version: str = ""
    revision: str = ""
    providers: tuple[ProviderEntry, ...] = Field(min_length=1, max_length=8)
    capacity_types: tuple[CapacityType, ...] = (CapacityType.ON_DEMAND, CapacityType.SPOT)
    strategy: Strategy = Strategy.ORDERED
    max_price_per_hour: Decimal | None = None
    budget_per_hour: Decimal | None = None
    failover: Failover = Failover()
    allow_larger_shapes: bool = False
    allow_unknown_exit: bool = False
    ingress: Ingress = Ingress()
    egress: Egress = Egress()
