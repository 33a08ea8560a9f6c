"""The filters, one reason each, tested in the closed order of ``Reason`` (docs/placement.md)."""

from __future__ import annotations

from decimal import Decimal

from nebula.domain.candidate import CapacityType, Shape
from nebula.domain.nodepool import IngressAuthentication, NodePool
from nebula.domain.workload import RestartPolicy
from nebula.placement.catalogue import Lineup, Stock
from nebula.placement.request import PlacementRequest, ProviderSupply
from nebula.placement.sizing import Quote
from nebula.placement.verdict import Reason, Refusal
from nebula.providers.base import Capabilities, RegionSet


def refuse_provider(supply: ProviderSupply) -> Refusal | None:
    """``provider_unconfigured``: no key here."""
    if supply.capabilities is not None and not supply.unconfigured:
        return None
    return Refusal(Reason.PROVIDER_UNCONFIGURED, supply.unconfigured or "the provider has no key in this installation")


def choose_counts(supply: ProviderSupply, shape: Shape, lineup: Lineup, *, larger: bool) -> tuple[int, ...] | Refusal:
    """The accelerator counts to consider, exact first, or why the provider cannot serve the shape.

    A larger count than asked is considered only where the pool allows it.
    """
    if shape.accelerator is None:
        return _cpu_only(supply, lineup)
    exact = tuple(count for count in lineup.counts if larger or count == shape.accelerator_count)
    if exact:
        return exact
    return Refusal(Reason.ACCELERATOR_UNSUPPORTED, _why_unsupported(supply, shape, lineup))


def _cpu_only(supply: ProviderSupply, lineup: Lineup) -> tuple[int, ...] | Refusal:
    if supply.capabilities is None or not supply.capabilities.cpu_only or not supply.catalogue.sells(None):
        return Refusal(Reason.CPU_ONLY_UNSUPPORTED, "the provider rents no machine without an accelerator")
    if not lineup.counts:
        return Refusal(Reason.CPU_ONLY_UNSUPPORTED, "no CPU offer holds the requested CPU and memory")
    return lineup.counts


def _why_unsupported(supply: ProviderSupply, shape: Shape, lineup: Lineup) -> str:
    accelerator = shape.accelerator or ""
    if lineup.counts:
        sold = ", ".join(str(count) for count in lineup.counts)
        return f"{accelerator} is sold here only in {sold}, and the pool does not allow larger shapes"
    if supply.catalogue.sells(accelerator):
        return f"no {accelerator} offer holds the requested count, CPU and memory"
    similar = supply.catalogue.similar(accelerator)
    hint = f"; sold here: {', '.join(similar)}" if similar else ""
    return f"{accelerator} is not sold here{hint}"


def refuse_tier(capabilities: Capabilities, lineup: Lineup, tier: CapacityType) -> Refusal | None:
    """``capacity_type_unsupported``: the provider, or its list for this shape, knows no such tier."""
    if tier not in capabilities.capacity_types:
        return Refusal(Reason.CAPACITY_TYPE_UNSUPPORTED, f"the provider sells no {tier} capacity")
    if tier not in lineup.tiers:
        return Refusal(Reason.CAPACITY_TYPE_UNSUPPORTED, f"the shape is not sold as {tier}")
    return None


def refuse_region(supply: ProviderSupply, region_set: RegionSet, stock: Stock) -> Refusal | None:
    """``region_unsupported``: residency is hard, an unknown place never widens to anywhere."""
    if supply.entry.regions and not region_set.ids:
        return Refusal(Reason.REGION_UNSUPPORTED, f"{region_set.label} names no region of this provider")
    if not stock.sold:
        return Refusal(Reason.REGION_UNSUPPORTED, f"the shape is not sold in {region_set.label}")
    return None


def refuse_nowhere(supply: ProviderSupply) -> Refusal:
    """``region_unsupported`` for an entry whose regions mean nothing to the provider."""
    return Refusal(Reason.REGION_UNSUPPORTED, f"{', '.join(supply.entry.regions)} names no region of this provider")


def refuse_policy(supply: ProviderSupply, pool: NodePool, request: PlacementRequest) -> Refusal | None:
    """What holds for every candidate of a provider: egress, ingress, exit codes, its virtual Node."""
    can = supply.capabilities
    if can is None:
        return None
    if pool.egress.mode not in can.egress_modes:
        return Refusal(Reason.EGRESS_UNSUPPORTED, f"the provider cannot enforce egress {pool.egress.mode}")
    if request.publishes and not can.ingress:
        return Refusal(Reason.INGRESS_UNSUPPORTED, "the provider publishes no port")
    authenticated = pool.ingress.authentication is IngressAuthentication.PROVIDER
    if request.publishes and authenticated and not can.ingress_authentication:
        return Refusal(
            Reason.INGRESS_AUTHENTICATION_UNSUPPORTED,
            "the provider does not authenticate callers; ingress.authentication: Application would admit it",
        )
    finishes = request.restart_policy is not RestartPolicy.ALWAYS
    if finishes and not can.reports_exit_code and not pool.allow_unknown_exit:
        return Refusal(
            Reason.EXIT_CODE_UNSUPPORTED,
            f"restartPolicy {request.restart_policy} needs an exit code, which the provider does not report; "
            "allowUnknownExit would admit it",
        )
    if supply.node_not_ready:
        return Refusal(Reason.NODE_NOT_READY, supply.node_not_ready)
    if supply.node_unsuitable:
        return Refusal(Reason.NODE_UNSUITABLE, supply.node_unsuitable)
    return None


def refuse_price(stock: Stock, pool: NodePool, budget_left: Decimal | None) -> Refusal | None:
    """``price_above_maximum``, ``budget_exhausted``: by the cheapest that is sold."""
    cheapest = stock.sold[0].total
    maximum = pool.max_price_per_hour
    if maximum is not None and cheapest > maximum:
        return Refusal(Reason.PRICE_ABOVE_MAXIMUM, f"{usd(cheapest)} is above maxPricePerHour {usd(maximum)}")
    if budget_left is not None and cheapest > budget_left:
        return refuse_budget(cheapest, pool)
    return None


def refuse_budget(cheapest: Decimal, pool: NodePool) -> Refusal:
    """``budget_exhausted`` by a price that is above what is left: of what is sold, or of what is in stock."""
    return Refusal(Reason.BUDGET_EXHAUSTED, f"{usd(cheapest)} {_why_over(cheapest, pool.budget_per_hour)}")


def _why_over(cheapest: Decimal, budget: Decimal | None) -> str:
    """Whether waiting helps. What is left is not named: it changes, and the words are shown once per change."""
    whole = "" if budget is None else f" {usd(budget)}"
    if budget is not None and cheapest > budget:
        return f"is above the whole budgetPerHour{whole}"
    return f"does not fit in what is left of budgetPerHour{whole}"


def refuse_stock(
    quotes: tuple[Quote, ...], key: str, request: PlacementRequest, blocked: Refusal | None
) -> Refusal | None:
    """What the moment decides: the ledger's word on the budget, stock, blocks, this claim's exclusions."""
    if request.over_budget and key in request.over_budget:
        return Refusal(Reason.BUDGET_EXHAUSTED, "another Pod took what was left of budgetPerHour")
    if not quotes:
        return Refusal(Reason.UNAVAILABLE, "the provider has none in stock within the price limits")
    if blocked is None and request.exclusions and key in request.exclusions:
        return Refusal(Reason.EXCLUDED, "refused here before for reasons of this Pod")
    return blocked


def usd(amount: Decimal) -> str:
    """Render USD per hour: at least two decimals, no trailing noise (``$2.39/h``)."""
    exponent = amount.normalize().as_tuple().exponent
    places = max(2, -exponent if isinstance(exponent, int) else 2)
    return f"${amount:.{min(places, 4)}f}/h"
