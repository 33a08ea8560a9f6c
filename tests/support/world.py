"""A whole installation in one process: memory ledgers, the simulated provider, the Kubernetes emulator.

Workflows run exactly as the functions call them; the bus is a list that a test may reorder, repeat or
lose. Nothing sleeps: time is a ``ManualClock``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from nebula.clock import ManualClock
from nebula.domain.claim import Claim, Phase, claim_id_for
from nebula.events.details import ClaimDetail, DetailType, NodePoolDetail, PodDetail
from nebula.events.envelope import parse_envelope
from nebula.events.memory import MemoryPublisher, MemoryTickQueue
from nebula.kubernetes.api import KubernetesApi
from nebula.observability import MemoryTelemetry
from nebula.providers.base import Provider, Providers
from nebula.providers.errors import ProviderUnconfiguredError
from nebula.providers.simulated import DEFAULT_CAPABILITIES, SimulatedProvider
from nebula.stores.memory_blocks import MemoryBlockStore
from nebula.stores.memory_claims import MemoryClaimStore
from nebula.stores.memory_credentials import MemoryCredentialStore
from nebula.stores.memory_sightings import MemorySightingStore
from nebula.workflows.orphans import OrphanPolicy
from nebula.workflows.place import node_pool_changed, place_claim, place_pod
from nebula.workflows.poll import PollReport, scheduled, tick
from nebula.workflows.provision import provision_claim
from nebula.workflows.services import Services
from nebula.workflows.terminate import pod_deleted, reclaim_claim
from pydantic import SecretStr

from local.kubernetes.adapter import client
from local.kubernetes.resources import NODE_POOLS, PODS
from local.kubernetes.server import Emulator
from tests.support.chance import repeatable

START = datetime(2026, 11, 1, 12, tzinfo=UTC)
CLUSTER = "test"
INSTALLATION = "test-installation"
MINUTE = timedelta(minutes=1)
Object = dict[str, Any]


class FixedProviders(Providers):
    """The providers of a test; ``keys`` are those that have a key, and what tells it from another."""

    def __init__(self, *providers: Provider) -> None:
        self._providers = {provider.name: provider for provider in providers}
        self.keys = dict.fromkeys(self._providers, "key-1")

    def names(self) -> tuple[str, ...]:
        return tuple(self._providers)

    def get(self, name: str) -> Provider:
        if name not in self._providers or name not in self.keys:
            raise ProviderUnconfiguredError(f"{name} has no key here")
        return self._providers[name]

    def fingerprint(self, name: str) -> str:
        self.get(name)
        return self.keys[name]


class FixedClusters:
    """Clusters by name."""

    def __init__(self, *apis: KubernetesApi) -> None:
        self._apis = {api.name: api for api in apis}

    def names(self) -> Sequence[str]:
        return sorted(self._apis)

    def get(self, name: str) -> KubernetesApi:
        return self._apis[name]


def pod_object(name: str = "train", **changes: Any) -> Object:
    """A gated, opted-in Pod that asks for one H100; ``changes`` go into its spec, ``labels`` into its labels."""
    labels = {
        "nebula.inftyai.com/enabled": "true",
        "nebula.inftyai.com/nodepool": "pool",
        "nebula.inftyai.com/accelerator-type": "h100",
        **changes.pop("labels", {}),
    }
    spec: Object = {
        "restartPolicy": "Always",
        "schedulingGates": [{"name": "nebula.inftyai.com/provider-selection"}],
        "containers": [
            {
                "name": "main",
                "image": "registry.example.com/train:1",
                "resources": {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}},
            }
        ],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels, "annotations": changes.pop("annotations", {})},
        "spec": {**spec, **changes},
    }


def pool_object(*providers: str, **spec: Any) -> Object:
    """A NodePool named ``pool`` over the given providers."""
    entries = [{"name": provider} for provider in (providers or ("simulated",))]
    return {
        "apiVersion": "nebula.inftyai.com/v1alpha1",
        "kind": "NodePool",
        "metadata": {"name": "pool"},
        "spec": {"providers": entries, "capacityTypes": ["OnDemand"], **spec},
    }


class World:
    """One installation. ``queue`` holds the envelopes on the bus; ``pump`` delivers them as the rules do."""

    def __init__(
        self,
        *providers: Provider,
        pool: Object | None = None,
        visibility_delay: timedelta = timedelta(0),
        **stores: Any,
    ) -> None:
        self.clock: ManualClock = stores.get("clock") or ManualClock(START)
        self.emulator = Emulator(clock=self.clock, chance=repeatable())
        self.api = client(self.emulator, CLUSTER)
        self.clusters = FixedClusters(self.api)
        capabilities = DEFAULT_CAPABILITIES.model_copy(update={"visibility_delay": visibility_delay})
        self.simulated = SimulatedProvider(self.clock, capabilities=capabilities)
        self.providers = FixedProviders(*(providers or (self.simulated,)))
        self.publisher = MemoryPublisher(self.clock)
        self.ticks = MemoryTickQueue(self.clock)
        self.telemetry = MemoryTelemetry()
        self.claims = stores.get("claims") or MemoryClaimStore()
        self.blocks = stores.get("blocks") or MemoryBlockStore()
        self.credentials = stores.get("credentials") or MemoryCredentialStore()
        self.sightings = stores.get("sightings") or MemorySightingStore()
        self.queue: list[Object] = []
        self.emulator.create(NODE_POOLS, "", pool or pool_object(*self.providers.names()))

    def services(self, function: str) -> Services:
        """The edges as one function sees them."""
        return Services(
            function=function,
            installation=INSTALLATION,
            clock=self.clock,
            claims=self.claims,
            blocks=self.blocks,
            credentials=self.credentials,
            sightings=self.sightings,
            publisher=self.publisher,
            ticks=self.ticks,
            clusters=self.clusters,
            providers=self.providers,
            telemetry=self.telemetry,
            fingerprint_key=SecretStr("k" * 32),
        )

    def create_pod(self, name: str = "train", *, announce: bool = True, **changes: Any) -> Object:
        """Apply a Pod; the forwarder's ``Pod Gated`` goes on the bus."""
        pod = self.emulator.create(PODS, "default", pod_object(name, **changes))
        if announce:
            self.announce(DetailType.POD_GATED, pod)
        return pod

    def delete_pod(self, name: str = "train", *, announce: bool = True) -> None:
        """``kubectl delete pod``; the forwarder's ``Pod Deleted`` goes on the bus."""
        pod = self.pod(name)
        self.emulator.handle("DELETE", f"/api/v1/namespaces/default/pods/{name}", {}, {}, b"")
        if announce and pod is not None:
            self.announce(DetailType.POD_DELETED, pod)

    def pod(self, name: str = "train") -> Object | None:
        """The Pod as it stands."""
        return self.emulator.read(PODS, "default", name)

    def announce(self, detail_type: DetailType, pod: Object) -> None:
        """Put a forwarder's event about a Pod on the bus."""
        meta = pod["metadata"]
        detail = PodDetail(cluster=CLUSTER, namespace="default", name=meta["name"], uid=meta["uid"])
        self.queue.append(
            {"source": "nebula.kubernetes", "detail-type": str(detail_type), "detail": detail.model_dump(mode="json")}
        )

    # The bus

    def collect(self) -> list[Object]:
        """Move what was published onto the bus, and return the bus."""
        self.queue.extend(self.publisher.take())
        return self.queue

    def pump(self, *, copies: int = 1, limit: int = 1000) -> None:
        """Deliver everything, ``copies`` times each, until the bus is empty."""
        for _ in range(limit):
            if not self.collect():
                return
            envelope = self.queue.pop(0)
            try:
                for _ in range(copies):
                    self.deliver(envelope)
            except BaseException:
                self.queue.insert(0, envelope)
                raise
        raise AssertionError("the bus does not come to rest")

    def deliver(self, raw: Object) -> None:
        """Wake the function that the rules name, with a copy of the event."""
        envelope = parse_envelope(copy.deepcopy(raw))
        placement, provisioning = self.services("placement"), self.services("provisioning")
        kind = envelope.detail_type
        if kind in (DetailType.POD_GATED, DetailType.POD_CHANGED):
            pod = envelope.read(PodDetail)
            place_pod(placement, pod.cluster, pod.namespace, pod.name, pod.uid)
        elif kind == DetailType.POD_DELETED:
            pod = envelope.read(PodDetail)
            pod_deleted(provisioning, pod.cluster, pod.namespace, pod.name, pod.uid)
        elif kind == DetailType.NODEPOOL_CHANGED:
            pool = envelope.read(NodePoolDetail)
            node_pool_changed(placement, pool.cluster, pool.name)
        elif kind in (DetailType.CLAIM_PLACED, DetailType.INSTANCE_READY):
            provision_claim(provisioning, envelope.read(ClaimDetail).claim_id)
        elif kind == DetailType.PROVISION_REJECTED:
            place_claim(placement, envelope.read(ClaimDetail).claim_id, due=False)
        elif kind == DetailType.CLAIM_DUE:
            self._due(envelope.read(ClaimDetail))

    def _due(self, claim: ClaimDetail) -> None:
        if claim.phase == Phase.PENDING:
            place_claim(self.services("placement"), claim.claim_id)
        elif claim.phase in (Phase.WITHDRAWING, Phase.TERMINATING):
            reclaim_claim(self.services("provisioning"), claim.claim_id)
        else:
            provision_claim(self.services("provisioning"), claim.claim_id)

    # The schedule

    def tick(self, *, after: timedelta = timedelta(seconds=15), pump: bool = True) -> PollReport:
        """One tick ``after`` from now."""
        self.clock.advance(after)
        report = tick(self.services("status_polling"), due_at=self.clock.now(), until=self.clock.now() + MINUTE)
        if pump:
            self.pump()
        return report

    def minute(self, *, terminate: bool = True, pump: bool = True) -> PollReport:
        """A minute of the schedule: ticks, then the sweep."""
        for _ in range(3):
            self.tick(pump=pump)
        self.clock.advance(timedelta(seconds=15))
        until = self.clock.now() + MINUTE
        report = scheduled(self.services("status_polling"), policy=OrphanPolicy(terminate=terminate), until=until)
        if pump:
            self.pump()
        return report

    def run(self, minutes: int) -> None:
        """Let the installation run."""
        for _ in range(minutes):
            self.minute()

    def claim(self, name: str = "train") -> Claim:
        """The claim of a Pod that exists."""
        pod = self.pod(name)
        assert pod is not None
        found = self.claims.get(claim_id_for(CLUSTER, pod["metadata"]["uid"]))
        assert found is not None
        return found

    def billed(self, provider: SimulatedProvider | None = None) -> list[str]:
        """Ids of instances of ours that are billed."""
        return [m.id for m in (provider or self.simulated).console.owned()]

    def committed(self) -> Decimal:
        """USD/h that the pool's counter holds."""
        return Decimal(self.claims.budget(CLUSTER, "pool").committed_per_hour)


def until_true(world: World, what: Callable[[], bool], minutes: int = 10) -> None:
    """Run minutes until something holds; AssertionError when it does not come."""
    for _ in range(minutes):
        if not what():
            world.minute()
    assert what(), "it did not come to hold"


def running(pod: Object | None) -> bool:
    """Whether a Pod shows Running and Ready."""
    if pod is None or pod.get("status", {}).get("phase") != "Running":
        return False
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))


__all__ = ["CLUSTER", "INSTALLATION", "World", "pod_object", "pool_object", "running", "until_true"]
