"""Everything that must hold before an instance is bought, read at act time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from nebula.domain.claim import Claim, TerminationReason
from nebula.domain.instance import Instance
from nebula.domain.nodepool import NodePool
from nebula.domain.workload import Workload
from nebula.kubernetes.api import KubernetesApi
from nebula.kubernetes.node import node_name
from nebula.kubernetes.node_pool import InvalidNodePoolError, node_pool_from_object
from nebula.kubernetes.pod import Pod
from nebula.kubernetes.pull_secrets import PullLookup, UnsupportedPullSecretError, find_pull_credential
from nebula.kubernetes.workload import InvalidPodError, Translation, WaitingForReferenceError, translate
from nebula.lifecycle.transitions import back_to_pending, with_attempt, withdrawing
from nebula.placement.filters import usd
from nebula.providers.base import Provider, RegistryCredentials
from nebula.providers.errors import ProviderError, ProviderUnconfiguredError
from nebula.providers.naming import instance_name
from nebula.workflows.accounts import account_of
from nebula.workflows.lend import CredentialExpiredError, ensure_credential, forget_credential
from nebula.workflows.pod_checks import Standing, node_trouble, read_pod
from nebula.workflows.pod_report import show_condition, show_event, show_let_go, show_rejection
from nebula.workflows.pull_choice import PullChoice, choose
from nebula.workflows.rejection import announce_rejection
from nebula.workflows.services import Services
from nebula.workflows.terminate import end_claim, reclaim

#: How soon a claim that waits for something in its cluster is looked at again.
WAIT = timedelta(seconds=30)
#: How far above ``maxPricePerHour`` a bill may be by rounding.
ROUNDING = Decimal("1.01")
#: How soon a Pod that must change is read again, in case the word of its change was lost.
RECHECK = timedelta(minutes=5)


class NotReadyError(Exception):
    """Nothing may be bought now. ``reason`` is CamelCase; ``retry_in`` is when to look again.

    ``over`` ends the claim (its Pod is gone, or not ours any more: then ``pod`` is told so);
    ``elsewhere`` wakes placement for another candidate at once, ``anew`` for any: what was decided no
    longer holds.
    """

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        pod: Pod | None = None,
        retry_in: timedelta = WAIT,
        over: bool = False,
        elsewhere: bool = False,
        anew: bool = False,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.pod = pod
        self.retry_in = retry_in
        self.over = over
        self.elsewhere = elsewhere
        self.anew = anew

    def apply(self, services: Services, claim: Claim) -> Claim:
        """Write what this means for a Placed claim; returns it as written."""
        if self.over:
            if self.pod is not None:
                show_let_go(services, services.clusters.get(claim.cluster), self.pod)
            return end_claim(services, claim, TerminationReason.POD_DELETED, str(self))
        now = services.clock.now()
        moved = back_to_pending(
            claim,
            now,
            reason=self.reason,
            message=str(self),
            next_action_at=now + self.retry_in,
            rejected=self.elsewhere or self.anew,
            exclude=self.elsewhere,
        )
        written = services.claims.save(claim, moved)
        if self.pod is not None:
            show_rejection(services, services.clusters.get(claim.cluster), self.pod, written)
        return announce_rejection(services, written) if self.elsewhere or self.anew else written


@dataclass(frozen=True)
class Preparation:
    """A Pod that may be provisioned now, translated, with the credential that pulls its image."""

    api: KubernetesApi
    pod: Pod
    pool: NodePool
    provider: Provider
    workload: Workload
    instance_name: str
    choice: PullChoice
    account: str = ""

    def ensure_credential(self, services: Services) -> str | None:
        """The provider-side id of the pull credential, made there if need be; None for anonymous pulls."""
        if self.choice.pull is None or self.choice.key is None:
            return None
        return ensure_credential(services, self.provider, self.choice.key, self.choice.pull)

    def forget_credential(self, services: Services) -> None:
        """Drop the cached id: a create that used it failed."""
        if self.choice.key is not None:
            forget_credential(services, self.provider, self.choice.key)

    def above_maximum(self, instance: Instance) -> str:
        """Why an instance must not be kept that is billed above ``maxPricePerHour``; empty when it may.

        What was decided on may be an old price list. A cent in a dollar is left to how a provider rounds.
        """
        maximum, billed = self.pool.max_price_per_hour, instance.cost_per_hour
        if maximum is None or billed is None or billed <= maximum * ROUNDING:
            return ""
        return f"{self.provider.name} bills {usd(billed)} for {instance.id}, above maxPricePerHour {usd(maximum)}"

    def report_rejection(self, services: Services, claim: Claim) -> None:
        """Say on the Pod why the candidate was given up."""
        show_rejection(services, self.api, self.pod, claim)


def prepare(services: Services, claim: Claim) -> Preparation:
    """Check and translate a Placed claim's Pod; the credential's row is written, nothing is bought.

    Raises NotReadyError with what stands in the way, and ``ClusterUnavailableError`` when nobody answers.
    """
    api = services.clusters.get(claim.cluster)
    pod = _checked_pod(api, claim)
    pool = _pool(api, claim, pod)
    _check_decision(claim, pod, pool)
    provider = _provider(services, claim, pod)
    account = _account(services, provider, pod)
    trouble = node_trouble(api, provider.name, pod)
    if trouble:
        raise NotReadyError("NodeNotReady", trouble, pod=pod)
    translation = _translated(api, pod, pool, provider.name)
    lookup = _pull(services, api, provider, pod, translation.workload.image)
    if translation.ignored:
        show_event(services, api, pod, reason="Translated", message="ignored: " + ", ".join(translation.ignored))
    return Preparation(
        api=api,
        pod=pod,
        pool=pool,
        provider=provider,
        workload=translation.workload,
        instance_name=instance_name(
            claim.namespace, claim.pod_name, claim.claim_id, provider.capabilities.max_name_length
        ),
        choice=_chosen(services, provider, pod, claim, lookup),
        account=account,
    )


def _check_decision(claim: Claim, pod: Pod, pool: NodePool) -> None:
    """Price, place, ingress and shape were decided on what the Pod and its NodePool said then."""
    if pod.fields_hash() != claim.pod_fields_hash or pod.node_pool != claim.node_pool:
        raise NotReadyError("PodChanged", "the Pod changed after it was placed: deciding again", pod=pod, anew=True)
    if pool.revision != claim.node_pool_revision:
        message = f"NodePool {pool.name} changed after the Pod was placed: deciding again"
        raise NotReadyError("NodePoolChanged", message, pod=pod, anew=True)


def _checked_pod(api: KubernetesApi, claim: Claim) -> Pod:
    reading = read_pod(api, claim)
    if reading.pod is not None and reading.standing is Standing.READY:
        return reading.pod
    if reading.standing is Standing.FOREIGN_GATES:
        raise NotReadyError("ForeignGates", reading.detail, pod=reading.pod)
    let_go = reading.pod if reading.standing is Standing.UNGATED else None
    raise NotReadyError(str(reading.standing), reading.detail, pod=let_go, over=True)


def _pool(api: KubernetesApi, claim: Claim, pod: Pod) -> NodePool:
    found = api.get_node_pool(claim.node_pool)
    if found is None:
        raise NotReadyError("NodePoolNotFound", f"NodePool {claim.node_pool} does not exist", pod=pod)
    try:
        return node_pool_from_object(found)
    except InvalidNodePoolError as error:
        raise NotReadyError("InvalidNodePool", str(error), pod=pod) from None


def _provider(services: Services, claim: Claim, pod: Pod) -> Provider:
    name = claim.candidate.provider if claim.candidate is not None else ""
    try:
        return services.providers.get(name)
    except ProviderUnconfiguredError as error:
        raise NotReadyError("ProviderUnconfigured", str(error), pod=pod, elsewhere=True) from None


def _account(services: Services, provider: Provider, pod: Pod) -> str:
    try:
        return account_of(services, provider)
    except ProviderError as error:
        raise NotReadyError("AccountUnknown", f"{provider.name} does not tell its account: {error}", pod=pod) from None


def _translated(api: KubernetesApi, pod: Pod, pool: NodePool, provider: str) -> Translation:
    try:
        return translate(pod, pool, api, node_name=node_name(provider))
    except WaitingForReferenceError as error:
        raise NotReadyError("WaitingForReference", str(error), pod=pod) from None
    except InvalidPodError as error:
        raise NotReadyError(error.reason, str(error), pod=pod, retry_in=RECHECK) from None


def _pull(services: Services, api: KubernetesApi, provider: Provider, pod: Pod, image: str) -> PullLookup:
    try:
        lookup = find_pull_credential(api, pod, image)
    except UnsupportedPullSecretError as error:
        raise NotReadyError("UnsupportedPullSecret", str(error), pod=pod, retry_in=RECHECK) from None
    for warning in lookup.warnings:
        show_event(services, api, pod, reason="FailedToRetrieveImagePullSecret", message=warning, type_="Warning")
    if lookup.credential is not None and not isinstance(provider, RegistryCredentials):
        message = f"{provider.name} cannot take a registry credential, and an anonymous pull would be a guess"
        raise NotReadyError("RegistryCredentialUnsupported", message, pod=pod, elsewhere=True)
    if lookup.credential is not None and not services.fingerprint_key.get_secret_value():
        message = "the image needs a registry credential, and the installation has no fingerprint key to lend it under"
        raise NotReadyError("FingerprintKeyMissing", message, pod=pod, retry_in=RECHECK)
    return lookup


def _chosen(services: Services, provider: Provider, pod: Pod, claim: Claim, lookup: PullLookup) -> PullChoice:
    try:
        return choose(services, provider, claim, lookup)
    except CredentialExpiredError as error:
        raise NotReadyError("CredentialExpired", str(error), pod=pod, retry_in=RECHECK) from None
    except ProviderError as error:
        raise NotReadyError("AccountUnknown", f"{provider.name} does not tell its account: {error}", pod=pod) from None


def show_provisioning(services: Services, prepared: Preparation, claim: Claim) -> None:
    """Say on the Pod that an instance is being made, when it does not follow at once."""
    show_condition(services, prepared.api, prepared.pod, reason="Provisioning", message=claim.message)


def take_back_dear(services: Services, prepared: Preparation, claim: Claim, message: str) -> Claim:
    """Give a Provisioned claim's instance back before its Pod is released; the claim avoids the candidate."""
    now = services.clock.now()
    noted = claim.model_copy(update={"attempts": with_attempt(claim, detail=message)})
    leaving = withdrawing(noted, now, reason="PriceAboveMaximum", message=message, exclude=True)
    written = services.claims.save(claim, leaving)
    prepared.report_rejection(services, written)
    return reclaim(services, written)
