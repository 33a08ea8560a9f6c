"""The simulated provider's machines: a timeline each, so that any moment of it can be looked at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from nebula.domain.base import Model
from nebula.domain.candidate import CapacityType
from nebula.domain.instance import Instance, InstanceState, Mark


class Behaviour(Model):
    """How machines live, in durations from their creation or from the call that ends them.

    ``boot``: until it runs. ``visible_after``: how long lists miss a new one. ``list_lag``: how old a
    list's picture is. ``termination``: how long an accepted delete takes. ``linger``: how long a dead
    one is still reported as terminated. ``runs_for``: until the container exits by itself, with
    ``exit_code``.
    """

    boot: timedelta = timedelta(0)
    visible_after: timedelta = timedelta(0)
    list_lag: timedelta = timedelta(0)
    termination: timedelta = timedelta(0)
    linger: timedelta = timedelta(0)
    runs_for: timedelta | None = None
    exit_code: int | None = 0


@dataclass
class Machine:
    """One machine. A time that is None has not come and is not known to come."""

    id: str
    name: str
    mark: Mark | None
    instance_type: str
    capacity_type: CapacityType
    region: str
    scope: str
    rate: Decimal
    created_at: datetime
    visible_at: datetime
    running_at: datetime
    registry_credential_id: str | None = None
    endpoint: str | None = None
    exited_at: datetime | None = None
    exit_code: int | None = None
    failure: str | None = None
    terminated_at: datetime | None = None
    preempted: bool = False
    linger: timedelta = timedelta(0)
    _views: dict[InstanceState, Instance] = field(default_factory=dict, repr=False)

    def state(self, at: datetime) -> InstanceState:
        """The state at a moment after its creation."""
        if _come(self.terminated_at, at):
            return InstanceState.TERMINATED
        if _come(self.exited_at, at):
            return InstanceState.FAILED if self.failure is not None else InstanceState.EXITED
        return InstanceState.RUNNING if self.running_at <= at else InstanceState.PENDING

    def known(self, at: datetime) -> bool:
        """Whether a read by id finds it: created, and not dead for longer than it lingers."""
        if self.created_at > at:
            return False
        return self.terminated_at is None or at < self.terminated_at + self.linger

    def billed(self, at: datetime) -> bool:
        """Whether it costs money at a moment."""
        return self.created_at <= at and not _come(self.terminated_at, at)

    def instance(self, at: datetime) -> Instance:
        """What the provider says of it at a moment."""
        state = self.state(at)
        seen = self._views.get(state)
        if seen is None:
            seen = self._views[state] = self._render(state)
        return seen

    def changed(self) -> None:
        """Forget what was rendered, after a field was set by hand."""
        self._views.clear()

    def _render(self, state: InstanceState) -> Instance:
        ended = state in {InstanceState.EXITED, InstanceState.FAILED, InstanceState.TERMINATED}
        return Instance(
            id=self.id,
            name=self.name,
            mark=self.mark,
            state=state,
            provider_state=state.lower(),
            instance_type=self.instance_type,
            region=self.region,
            scope=self.scope,
            cost_per_hour=self.rate if state in {InstanceState.RUNNING, InstanceState.PENDING} else Decimal(0),
            endpoint=self.endpoint if state is InstanceState.RUNNING else None,
            exit_code=self.exit_code if ended else None,
            preempted=self.preempted and state is InstanceState.TERMINATED,
            created_at=self.created_at,
            started_at=self.running_at if state is not InstanceState.PENDING else None,
            message=self.failure or "" if ended else "",
        )


def _come(moment: datetime | None, at: datetime) -> bool:
    return moment is not None and moment <= at


class Fleet:
    """All machines by id, by mark and by scope. Not thread-safe: the provider holds the lock."""

    def __init__(self) -> None:
        self._machines: dict[str, Machine] = {}
        self._by_mark: dict[Mark, list[Machine]] = {}
        self._made = 0

    def next_id(self, prefix: str) -> str:
        """A new id; ids are never used twice."""
        self._made += 1
        return f"{prefix}-{self._made:06d}"

    def add(self, machine: Machine) -> None:
        """Take a machine in."""
        self._machines[machine.id] = machine
        if machine.mark is not None:
            self._by_mark.setdefault(machine.mark, []).append(machine)

    def get(self, machine_id: str) -> Machine | None:
        """A machine by id, dead ones included."""
        return self._machines.get(machine_id)

    def marked(self, mark: Mark) -> list[Machine]:
        """The machines that carry exactly this mark."""
        return list(self._by_mark.get(mark, ()))

    def remove(self, machine_id: str) -> None:
        """Forget a machine as if it had never been."""
        machine = self._machines.pop(machine_id)
        if machine.mark is not None:
            self._by_mark[machine.mark].remove(machine)

    def billed(self, at: datetime) -> Iterator[Machine]:
        """The machines that cost money at a moment."""
        return (machine for machine in self._machines.values() if machine.billed(at))

    def visible(self, at: datetime, lag: timedelta) -> Iterator[Machine]:
        """The machines that a list shows at a moment, when its picture is ``lag`` old."""
        picture = at - lag
        for machine in self._machines.values():
            if machine.visible_at <= at and machine.known(picture):
                yield machine

    def forget_dead(self, at: datetime) -> None:
        """Drop machines that no read can show any more, so that a long run does not slow down."""
        gone = [m.id for m in self._machines.values() if m.terminated_at is not None and not m.known(at)]
        for machine_id in gone:
            self.remove(machine_id)
