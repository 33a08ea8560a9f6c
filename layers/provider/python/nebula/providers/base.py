"""The contract that every provider fulfils."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Protocol, runtime_checkable

from pydantic import SecretStr

from nebula.domain.base import Model, StoredModel
from nebula.domain.candidate import Candidate, CapacityType
from nebula.domain.instance import Instance, InstanceListing, Mark
from nebula.domain.offering import Offering
from nebula.domain.workload import EgressMode, Workload


class Capabilities(Model):
    """What a provider can do; placement filters on it.

    ``visibility_delay`` is how long after a create the instance may be missing from lists;
    ``provision_timeout`` bounds one ``provision`` call. ``queues``: accepts without a machine, so the
    Pod is released only once the instance runs. ``max_name_length`` is in characters.
    """

    capacity_types: frozenset[CapacityType]
    cpu_only: bool = False
    egress_modes: frozenset[EgressMode] = frozenset({EgressMode.OPEN})
    ingress: bool = True
    ingress_authentication: bool = False
    queues: bool = False
    reports_exit_code: bool = False
    visibility_delay: timedelta = timedelta(0)
    provision_timeout: timedelta = timedelta(seconds=60)
    max_name_length: int = 63


class RegionSet(StoredModel):
    """One candidate's worth of regions: ``label`` is what the pool wrote, ``ids`` the provider's own."""

    label: str
    ids: tuple[str, ...] = ()


class OfferingList(StoredModel):
    """A provider's offerings and whether they are live or from the shipped catalog (with the reason)."""

    offerings: tuple[Offering, ...]
    source: str
    note: str = ""


class ProvisionRequest(Model):
    """Everything one ``provision`` call needs.

    ``name`` is within ``max_name_length``. ``registry_credential_id`` is the provider's id of the
    credential that pulls the image, None for an anonymous pull. ``secrets`` are what a provider might
    quote besides the workload's env (that credential's user and password): never sent, never shown.
    """

    mark: Mark
    name: str
    candidate: Candidate
    workload: Workload
    registry_credential_id: str | None = None
    secrets: tuple[SecretStr, ...] = ()


@runtime_checkable
class Provider(Protocol):
    """One place that rents machines. Calls return at once; waiting belongs to the status loop."""

    @property
    def name(self) -> str:
        """The provider's name in NodePools and in ``nebula-<name>`` Nodes."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What this provider can do."""
        ...

    def regions(self, declared: Sequence[str]) -> tuple[RegionSet, ...]:
        """Turn a pool's declared regions into candidates' region sets.

        An empty declaration means anywhere. A provider that takes several regions in one request
        returns one set per pool entry; EC2 returns one set per region. Unknown ids pass through.
        """
        ...

    def offerings(self) -> OfferingList:
        """What is sold, at what price; live where possible, else the shipped catalog.

        Never raises for a failing catalog route.
        """
        ...

    def provision(self, request: ProvisionRequest) -> Instance:
        """Create one instance that carries the mark, walking the candidate's instance types.

        Returns an instance with a non-empty id. Raises the errors of ``providers.errors``.
        """
        ...

    def find(self, mark: Mark) -> Instance | None:
        """The not-terminated instance that carries exactly this mark.

        None only after a complete listing; raises ``ProviderUnavailableError`` (or another
        ``ProviderError``) when the listing could not be completed.
        """
        ...

    def get(self, instance_id: str) -> Instance | None:
        """The instance by id; None when the provider positively says it does not exist."""
        ...

    def list_instances(self) -> InstanceListing:
        """Every instance of the account, owned and foreign, in one listing.

        A scope that failed is left out of ``complete_scopes`` and named in ``failed_scopes``; it does
        not raise for it. Raises when nothing at all could be listed.
        """
        ...

    def terminate(self, instance_id: str) -> None:
        """Ask for the end of an instance. Idempotent; an absent one is success."""
        ...

    def account(self) -> str | None:
        """The account's identity, None where the provider does not tell."""
        ...


class RegistryObject(StoredModel):
    """A registry credential as the provider lists it."""

    id: str
    name: str


@runtime_checkable
class RegistryCredentials(Protocol):
    """Optional ability: the provider keeps registry credentials of its own."""

    def ensure_registry_credential(self, name: str, username: SecretStr, password: SecretStr) -> str:
        """Find by name or create; returns the provider's non-empty id.

        A failed create lists again and takes the entry of that name with an id; otherwise the
        *create* error is raised. An answer without an id is an error.
        """
        ...

    def forget_registry_credential(self, name: str) -> None:
        """Drop a cached id, after a create that used it failed."""
        ...

    def list_registry_credentials(self) -> tuple[RegistryObject, ...]:
        """All registry credentials of the account, foreign ones included."""
        ...

    def delete_registry_credential(self, credential_id: str) -> None:
        """Delete by id; absent is success. Raises ``CredentialInUseError`` while a workload uses it."""
        ...


@runtime_checkable
class LogSource(Protocol):
    """Optional ability: the provider keeps the container's output."""

    def logs(self, instance_id: str, *, tail: int = 100) -> Iterator[str]:
        """The last ``tail`` lines and what follows, within one bounded read."""
        ...


class Providers(Protocol):
    """The providers of this installation by name; built on first use, cached per warm process."""

    def names(self) -> tuple[str, ...]:
        """Every provider the product knows, configured or not."""
        ...

    def get(self, name: str) -> Provider:
        """The provider; ``ProviderUnconfiguredError`` (with the reason) when it has no key here."""
        ...

    def fingerprint(self, name: str) -> str:
        """16 hex digits that change with the provider's key or endpoint and tell nothing of either.

        Raises what ``get`` raises.
        """
        ...
