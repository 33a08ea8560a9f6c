"""The RunPod provider: the contract of ``nebula.providers.base`` over the client."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from hashlib import sha256

from pydantic import SecretStr

from nebula.clock import Clock
from nebula.domain.candidate import CapacityType
from nebula.domain.instance import Instance, InstanceListing, InstanceState, Mark
from nebula.domain.workload import EgressMode
from nebula.http import HttpClient, new_session
from nebula.observability import Telemetry
from nebula.providers.base import Capabilities, OfferingList, ProvisionRequest, RegionSet, RegistryObject
from nebula.providers.errors import (
    AuthenticationError,
    ProviderError,
    ProviderUnavailableError,
    ProviderUnconfiguredError,
)
from nebula.providers.runpod import translate
from nebula.providers.runpod.access import PoolRefusals
from nebula.providers.runpod.catalog import RunPodCatalog
from nebula.providers.runpod.client import DEFAULT_BASE_URL, RunPodClient
from nebula.providers.runpod.errors import ContractError, UndecidedForbiddenError
from nebula.providers.runpod.instances import to_instance
from nebula.providers.runpod.listing import PodReader
from nebula.providers.runpod.regions import region_sets
from nebula.providers.runpod.registry import RunPodRegistry
from nebula.providers.runpod.walk import walk

PROVISION_SECONDS = 50.0
"""One ``provision`` in all, every type included: well within the function's 90 s and its lease."""

LEAST_SECONDS = 8.0
"""A further type is not begun with less time than this: a create places a machine before it answers."""


class RunPodProvider:
    """See ``Provider``, ``RegistryCredentials`` and ``LogSource``. One account; safe to share between threads."""

    name = "runpod"

    def __init__(
        self,
        client: RunPodClient,
        clock: Clock,
        telemetry: Telemetry,
        *,
        key_fingerprint: str = "",
        visibility_delay: timedelta = timedelta(seconds=5),
        default_disk_gb: int = translate.DEFAULT_DISK_GB,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._clock = clock
        self._telemetry = telemetry
        self._monotonic = monotonic
        self._default_disk_gb = default_disk_gb
        self._refusals = PoolRefusals()
        self._catalog = RunPodCatalog(client, clock, default_disk_gb=default_disk_gb)
        self._registry = RunPodRegistry(client)
        self._reader = PodReader(client, clock)
        self.key_fingerprint = key_fingerprint
        self.capabilities = Capabilities(
            capacity_types=frozenset({CapacityType.ON_DEMAND}),
            cpu_only=True,
            egress_modes=frozenset({EgressMode.OPEN}),
            ingress=True,
            ingress_authentication=False,
            queues=False,
            reports_exit_code=False,
            visibility_delay=visibility_delay,
            provision_timeout=timedelta(seconds=PROVISION_SECONDS),
            max_name_length=translate.MAX_NAME_LENGTH,
        )

    def regions(self, declared: Sequence[str]) -> tuple[RegionSet, ...]:
        """See ``Provider``: one set per pool entry, groups expanded."""
        return region_sets(declared, self._catalog.known_data_centers())

    def offerings(self) -> OfferingList:
        """See ``Provider``."""
        return self._catalog.offerings()

    def provision(self, request: ProvisionRequest) -> Instance:
        """See ``Provider``. Walks ``candidate.instance_types`` in order, each in a create of its own."""
        translate.check(request)
        ends_at = self._monotonic() + PROVISION_SECONDS

        def left() -> float:
            return ends_at - self._monotonic()

        try:
            instance, refused = walk(
                request.candidate.instance_types,
                lambda instance_type: self._create(request, instance_type, left()),
                lambda: left() >= LEAST_SECONDS,
            )
        except ProviderError:
            if request.registry_credential_id is not None:
                self._registry.forget_id(request.registry_credential_id)
            raise
        self._refusals.clear()
        return instance.model_copy(update={"refused_types": refused})

    def find(self, mark: Mark) -> Instance | None:
        """See ``Provider``. The mark alone decides, never the name."""
        listing = self._reader.read()
        found = [to_instance(pod) for pod in listing.items.values()]
        ours = [one for one in found if one.mark == mark and one.state is not InstanceState.TERMINATED]
        if ours:
            return ours[0]
        if not listing.complete:
            raise ProviderUnavailableError(f"the list of pods is not complete: {listing.problem}", code="list")
        return None

    def get(self, instance_id: str) -> Instance | None:
        """See ``Provider``."""
        pod = self._client.get_pod(instance_id)
        return None if pod is None else to_instance(pod)

    def list_instances(self) -> InstanceListing:
        """See ``Provider``. The one scope is ``""``."""
        listing = self._reader.read()
        return InstanceListing(
            began_at=listing.began_at,
            instances=tuple(to_instance(pod) for pod in listing.items.values()),
            complete_scopes=frozenset({""}) if listing.complete else frozenset(),
            failed_scopes={} if listing.complete else {"": listing.problem},
        )

    def terminate(self, instance_id: str) -> None:
        """See ``Provider``. DELETE, never a stop: a stopped pod's disk is billed on.

        After any refusal the pod is read: one that is gone or terminal is success.
        """
        try:
            self._client.delete_pod(instance_id)
        except ProviderError:
            if not self._is_gone(instance_id):
                raise

    def account(self) -> str | None:
        """None: REST v2 has no route that names the account."""
        return None

    def ensure_registry_credential(self, name: str, username: SecretStr, password: SecretStr) -> str:
        """See ``RegistryCredentials``."""
        return self._registry.ensure(name, username, password)

    def forget_registry_credential(self, name: str) -> None:
        """See ``RegistryCredentials``."""
        self._registry.forget(name)

    def list_registry_credentials(self) -> tuple[RegistryObject, ...]:
        """See ``RegistryCredentials``."""
        return self._registry.list()

    def delete_registry_credential(self, credential_id: str) -> None:
        """See ``RegistryCredentials``."""
        self._registry.delete(credential_id)

    def logs(self, instance_id: str, *, tail: int = 100) -> Iterator[str]:
        """See ``LogSource``."""
        return self._client.pod_logs(instance_id, tail)

    def _create(self, request: ProvisionRequest, instance_type: str, seconds: float) -> Instance:
        body = translate.body_for(request, instance_type, self._catalog.flavor, default_disk_gb=self._default_disk_gb)
        try:
            secrets = (*request.workload.env.values(), *request.secrets)
            pod = self._client.create_pod(body, secrets=secrets, seconds=seconds)
        except UndecidedForbiddenError as error:
            pool = f"{instance_type}/{translate.cloud_of(request.candidate.parameters)}"
            if self._refusals.another(pool, self._clock.now()):
                raise AuthenticationError(f"a second pool is refused: {error}", code=error.code) from None
            raise
        except ContractError as error:
            self._telemetry.error("RunPod calls a request of ours malformed", provider=self.name, answer=str(error))
            self._telemetry.count("ProviderContractBroken", provider=self.name)
            self._telemetry.count("Defects")
            raise
        # The mark is ours whatever the answer left out of ``env``.
        return to_instance(pod).model_copy(update={"mark": request.mark})

    def _is_gone(self, instance_id: str) -> bool:
        try:
            instance = self.get(instance_id)
        except ProviderError:
            return False
        return instance is None or instance.state is InstanceState.TERMINATED


def build(
    *,
    api_key: SecretStr,
    base_url: str = DEFAULT_BASE_URL,
    clock: Clock,
    telemetry: Telemetry,
    http: HttpClient | None = None,
) -> RunPodProvider:
    """The provider of one key. Raises ``ProviderUnconfiguredError`` for a key that no header can carry.

    ``base_url`` may end in ``/v2`` or not. ``key_fingerprint`` tells one key from another without
    revealing it (a key is random, so a short hash of it gives nothing away).
    """
    key = api_key.get_secret_value().strip()
    if not key:
        raise ProviderUnconfiguredError("the RunPod API key is empty")
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise ProviderUnconfiguredError("the RunPod API key holds characters that no key has")
    client = RunPodClient(
        SecretStr(key),
        http or HttpClient(new_session()),
        clock,
        telemetry,
        base_url=base_url.rstrip("/").removesuffix("/v2"),
    )
    fingerprint = sha256(key.encode()).hexdigest()[:12]
    return RunPodProvider(client, clock, telemetry, key_fingerprint=fingerprint)
