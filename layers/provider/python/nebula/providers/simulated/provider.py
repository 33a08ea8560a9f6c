"""The simulated provider: a whole provider in memory, with every fault on demand.

It ships so that an installation can be tried without renting anything; property tests and the benchmark run
on it. State lives in the object: two processes do not see each other's machines. Thread-safe.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from threading import RLock

from nebula.clock import Clock
from nebula.domain.candidate import CapacityType
from nebula.domain.instance import Instance, InstanceListing, Mark
from nebula.domain.offering import Offering
from nebula.domain.workload import EgressMode
from nebula.providers.base import Capabilities, OfferingList, ProvisionRequest, RegionSet
from nebula.providers.errors import (
    ImagePullError,
    ProviderUnavailableError,
    RequestRefusedError,
)
from nebula.providers.simulated.catalog import default_offerings
from nebula.providers.simulated.console import Console
from nebula.providers.simulated.machines import Behaviour, Fleet, Machine
from nebula.providers.simulated.market import Market
from nebula.providers.simulated.registry import SimulatedRegistry
from nebula.providers.simulated.script import Call, Script

DEFAULT_CAPABILITIES = Capabilities(
    capacity_types=frozenset(CapacityType),
    cpu_only=True,
    egress_modes=frozenset(EgressMode),
    ingress_authentication=True,
    reports_exit_code=True,
)
_TIDY_EVERY = 1000


class SimulatedProvider(SimulatedRegistry):
    """See ``Provider`` and ``RegistryCredentials``.

    ``scopes`` are what a listing covers separately (EC2 regions, say); a machine's scope is its region
    where that is one of them, else the first. ``behaviour`` may be replaced at any time and holds for
    what is made or ended from then on. ``per_region`` makes one candidate per region, as EC2 does.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        name: str = "simulated",
        capabilities: Capabilities = DEFAULT_CAPABILITIES,
        offerings: Sequence[Offering] | None = None,
        behaviour: Behaviour | None = None,
        script: Script | None = None,
        scopes: Sequence[str] = ("",),
        per_region: bool = False,
        account_id: str | None = "simulated-account",
    ) -> None:
        self._clock = clock
        self._name = name
        self._capabilities = capabilities
        self._per_region = per_region
        self._state = RLock()
        self.script = script or Script()
        self.behaviour = behaviour or Behaviour()
        self.market = Market(default_offerings(name) if offerings is None else tuple(offerings))
        self.account_id = account_id
        self.scopes = tuple(scopes)
        self._broken: dict[str, int] = {}
        self._fleet = Fleet()
        self.console = Console(self._fleet, clock, self._state, name)
        super().__init__(self.script, self._carries_credential)

    @property
    def name(self) -> str:
        """See ``Provider``."""
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        """See ``Provider``."""
        return self._capabilities

    def regions(self, declared: Sequence[str]) -> tuple[RegionSet, ...]:
        """See ``Provider``."""
        if not declared:
            return (RegionSet(label="any"),)
        if self._per_region:
            return tuple(RegionSet(label=region, ids=(region,)) for region in declared)
        return (RegionSet(label=",".join(declared), ids=tuple(declared)),)

    def offerings(self) -> OfferingList:
        """See ``Provider``; a scripted fault shows as an empty list with a note, never as an exception."""
        try:
            with self.script.call(Call.OFFERINGS):
                return OfferingList(offerings=self.market.offerings, source="simulated")
        except Exception as error:  # noqa: BLE001 - whatever the script raises
            return OfferingList(offerings=(), source="simulated", note=str(error))

    def provision(self, request: ProvisionRequest) -> Instance:
        """See ``Provider``."""
        with self.script.call(Call.PROVISION, request), self._state:
            self._refuse(request)
            machine = self._make(request)
            return machine.instance(machine.created_at)

    def find(self, mark: Mark) -> Instance | None:
        """See ``Provider``; reads a list, so what lists do not show yet is not found."""
        with self.script.call(Call.FIND, mark), self._state:
            if self._broken:
                raise ProviderUnavailableError(f"listing incomplete: {', '.join(sorted(self._broken))}")
            now = self._clock.now()
            picture = now - self.behaviour.list_lag
            for machine in self._fleet.marked(mark):
                if machine.visible_at <= now and machine.known(picture) and machine.billed(picture):
                    return machine.instance(picture)
            return None

    def get(self, instance_id: str) -> Instance | None:
        """See ``Provider``; never stale."""
        with self.script.call(Call.GET, instance_id), self._state:
            now = self._clock.now()
            machine = self._fleet.get(instance_id)
            return machine.instance(now) if machine is not None and machine.known(now) else None

    def list_instances(self) -> InstanceListing:
        """See ``Provider``."""
        with self.script.call(Call.LIST), self._state:
            if self._broken.keys() >= set(self.scopes) and not any(self._broken.values()):
                raise ProviderUnavailableError("no scope could be listed")
            now = self._clock.now()
            lag = self.behaviour.list_lag
            return InstanceListing(
                began_at=now,
                instances=tuple(self._listed(m.instance(now - lag) for m in self._fleet.visible(now, lag))),
                complete_scopes=frozenset(self.scopes) - self._broken.keys(),
                failed_scopes=dict.fromkeys(self._broken, "the listing broke off"),
            )

    def terminate(self, instance_id: str) -> None:
        """See ``Provider``."""
        with self.script.call(Call.TERMINATE, instance_id), self._state:
            machine = self._fleet.get(instance_id)
            if machine is None:
                return
            ends_at = self._clock.now() + self.behaviour.termination
            if machine.terminated_at is None or ends_at < machine.terminated_at:
                machine.terminated_at = ends_at
                machine.linger = self.behaviour.linger
                machine.changed()

    def account(self) -> str | None:
        """See ``Provider``."""
        with self.script.call(Call.ACCOUNT):
            return self.account_id

    def break_listing(self, scope: str = "", *, shown: int = 0) -> None:
        """Let every listing of a scope break off after ``shown`` instances, until it is mended."""
        with self._state:
            self._broken[scope] = shown

    def mend_listings(self) -> None:
        """Let every scope be listed completely again."""
        with self._state:
            self._broken.clear()

    def _carries_credential(self, credential_id: str) -> bool:
        return any(m.registry_credential_id == credential_id for m in self.console.living())

    def _listed(self, instances: Iterable[Instance]) -> Iterator[Instance]:
        """A scope that fails shows what its first pages held before it broke off."""
        left = dict(self._broken)
        for instance in instances:
            if instance.scope not in left:
                yield instance
            elif left[instance.scope] > 0:
                left[instance.scope] -= 1
                yield instance

    def _refuse(self, request: ProvisionRequest) -> None:
        workload = request.workload
        if len(request.name) > self._capabilities.max_name_length:
            raise RequestRefusedError(f"name is longer than {self._capabilities.max_name_length} characters")
        if workload.egress.mode not in self._capabilities.egress_modes:
            raise RequestRefusedError(f"egress {workload.egress.mode} cannot be enforced here")
        if request.candidate.capacity_type not in self._capabilities.capacity_types:
            raise RequestRefusedError(f"capacity type {request.candidate.capacity_type} is not sold here")
        credential = request.registry_credential_id
        if credential is not None and not self.has_registry_credential(credential):
            raise ImagePullError(f"registry credential {credential} does not exist", code="no_such_credential")

    def _make(self, request: ProvisionRequest) -> Machine:
        candidate = request.candidate
        now = self._clock.now()
        region = candidate.regions[0] if candidate.regions else "sim-1"
        chosen = self.market.choose(candidate, region, self._fleet.billed(now))
        behaviour = self.behaviour
        machine = Machine(
            id=self._fleet.next_id(self._name),
            name=request.name,
            mark=request.mark,
            instance_type=chosen.instance_type,
            capacity_type=candidate.capacity_type,
            region=region,
            scope=region if region in self.scopes else self.scopes[0],
            rate=chosen.rate,
            created_at=now,
            visible_at=now + behaviour.visible_after,
            running_at=now + behaviour.boot,
            registry_credential_id=request.registry_credential_id,
        )
        if request.workload.ports:
            machine.endpoint = f"https://{machine.id}-{request.workload.ports[0].port}.simulated.invalid"
        if behaviour.runs_for is not None:
            machine.exited_at = machine.running_at + behaviour.runs_for
            machine.exit_code = behaviour.exit_code
        self._fleet.add(machine)
        if self.script.counts[Call.PROVISION] % _TIDY_EVERY == 0:
            self._fleet.forget_dead(now - behaviour.list_lag)
        return machine
