"""An instance: what the provider bills, as last seen there."""

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from functools import cached_property

from pydantic import AwareDatetime

from nebula.domain.base import StoredModel


class Mark(StoredModel):
    """The ownership mark put on everything rented: installation, claim and attempt."""

    installation: str
    claim_id: str
    attempt: int


class InstanceState(StrEnum):
    """A provider's states folded to what the control plane acts on.

    ``PENDING`` covers every state not known to be another one, so that an unknown word never ends a
    Pod. ``TERMINATED`` means gone and no longer billed. ``EXITED`` is stopped but may still be billed.
    """

    PENDING = "Pending"
    RUNNING = "Running"
    EXITED = "Exited"
    FAILED = "Failed"
    TERMINATED = "Terminated"


class Instance(StoredModel):
    """One instance as the provider reports it.

    ``mark`` is None for a foreign instance. ``cost_per_hour`` is USD per hour as billed now (0 when
    stopped). ``endpoint`` is set only for a published port. ``exit_code`` is None where the provider
    does not report one. ``preempted`` is True only when the provider says so. ``refused_types`` has
    one line per instance type that the create was refused before this one; only ``provision`` sets it.
    """

    id: str
    name: str = ""
    mark: Mark | None = None
    state: InstanceState = InstanceState.PENDING
    provider_state: str = ""
    instance_type: str = ""
    region: str = ""
    scope: str = ""
    cost_per_hour: Decimal | None = None
    endpoint: str | None = None
    exit_code: int | None = None
    preempted: bool = False
    created_at: AwareDatetime | None = None
    started_at: AwareDatetime | None = None
    message: str = ""
    refused_types: tuple[str, ...] = ()


class InstanceListing(StoredModel):
    """One listing of a provider, and which of its scopes were listed to the last page.

    Absence from it counts only for an instance whose scope is in ``complete_scopes``. A provider
    without scopes uses the single scope ``""``. ``began_at`` is when the first page was asked for.
    ``by_id`` and ``by_mark`` are made once and kept: a listing is made anew, never copied with other instances.
    """

    began_at: AwareDatetime
    instances: tuple[Instance, ...] = ()
    complete_scopes: frozenset[str] = frozenset()
    failed_scopes: dict[str, str] = {}

    def is_complete(self, scope: str | None) -> bool:
        """Whether the scope was listed to its last page without an error; None asks for every scope."""
        if scope is None:
            return bool(self.complete_scopes) and not self.failed_scopes
        return scope in self.complete_scopes

    def proving_nothing(self, why: str) -> "InstanceListing":
        """The same sights, from which no absence can be concluded."""
        scopes = self.complete_scopes | self.failed_scopes.keys()
        return InstanceListing(
            began_at=self.began_at, instances=self.instances, failed_scopes=dict.fromkeys(scopes, why)
        )

    @cached_property
    def by_id(self) -> Mapping[str, Instance]:
        """The instances by id; of two with one id, the first listed."""
        return {instance.id: instance for instance in reversed(self.instances)}

    @cached_property
    def by_mark(self) -> Mapping[Mark, Instance]:
        """The instances that carry a mark, by it; of two with one mark, the first listed."""
        return {instance.mark: instance for instance in reversed(self.instances) if instance.mark is not None}
