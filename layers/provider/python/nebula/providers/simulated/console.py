"""What happens to machines without a call of ours: the provider's own doings, and a person's in its console."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from threading import RLock
from typing import Any

from nebula.clock import Clock
from nebula.domain.candidate import CapacityType
from nebula.domain.instance import InstanceState
from nebula.providers.simulated.machines import Fleet, Machine

NOTICE_SOURCE = "nebula.simulated"
NOTICE_TYPE = "EC2 Spot Instance Interruption Warning"


class Console:
    """Acts on machines by id; KeyError for one that was never made."""

    def __init__(self, fleet: Fleet, clock: Clock, lock: RLock, name: str) -> None:
        self._fleet = fleet
        self._clock = clock
        self._lock = lock
        self._name = name

    def living(self) -> list[Machine]:
        """What is billed now, foreign machines included."""
        with self._lock:
            return list(self._fleet.billed(self._clock.now()))

    def owned(self) -> list[Machine]:
        """What is billed now and carries a mark."""
        return [machine for machine in self.living() if machine.mark is not None]

    def exit(self, machine_id: str, exit_code: int | None) -> None:
        """The container ends by itself; the machine stays, stopped."""
        self._end(machine_id, exit_code=exit_code, failure=None)

    def fail(self, machine_id: str, message: str) -> None:
        """The machine breaks down and says so."""
        self._end(machine_id, exit_code=None, failure=message)

    def delete(self, machine_id: str) -> None:
        """A person deletes it: no read finds it any more."""
        self.kill(machine_id, linger=timedelta(0))

    def kill(self, machine_id: str, *, linger: timedelta) -> None:
        """It ends now and is reported as terminated for ``linger``."""
        with self._lock:
            machine = self._machine(machine_id)
            machine.terminated_at = self._clock.now()
            machine.linger = linger
            machine.changed()

    def interrupt(
        self, machine_id: str, *, notice: timedelta = timedelta(minutes=2), linger: timedelta = timedelta(hours=1)
    ) -> dict[str, Any]:
        """The provider takes a machine back after ``notice``; returns the warning as it would be on the bus.

        The detail is that of EC2's Spot interruption warning
        (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html).
        """
        with self._lock:
            machine = self._machine(machine_id)
            now = self._clock.now()
            machine.preempted = True
            machine.terminated_at = now + notice
            machine.linger = linger
            machine.changed()
        return {
            "version": "0",
            "id": f"interruption-{machine_id}",
            "detail-type": NOTICE_TYPE,
            "source": NOTICE_SOURCE,
            "account": "",
            "time": f"{now:%Y-%m-%dT%H:%M:%SZ}",
            "region": machine.region,
            "resources": [],
            "detail": {"instance-id": machine_id, "instance-action": "terminate", "provider": self._name},
        }

    def run_now(self, machine_id: str) -> None:
        """A machine that was queued or booting runs from now on."""
        with self._lock:
            machine = self._machine(machine_id)
            machine.running_at = self._clock.now()
            machine.changed()

    def add_foreign(self, name: str = "somebody-elses", scope: str = "") -> str:
        """A machine without a mark, as others in the account have; returns its id."""
        with self._lock:
            now = self._clock.now()
            machine = Machine(
                id=self._fleet.next_id("foreign"),
                name=name,
                mark=None,
                instance_type="sim-t4",
                capacity_type=CapacityType.ON_DEMAND,
                region=scope or "sim-1",
                scope=scope,
                rate=Decimal("0.20"),
                created_at=now,
                visible_at=now,
                running_at=now,
            )
            self._fleet.add(machine)
            return machine.id

    def _end(self, machine_id: str, *, exit_code: int | None, failure: str | None) -> None:
        with self._lock:
            machine = self._machine(machine_id)
            if machine.state(self._clock.now()) not in {InstanceState.PENDING, InstanceState.RUNNING}:
                raise ValueError(f"{machine_id} has ended already")
            machine.exited_at = self._clock.now()
            machine.exit_code = exit_code
            machine.failure = failure
            machine.changed()

    def _machine(self, machine_id: str) -> Machine:
        machine = self._fleet.get(machine_id)
        if machine is None:
            raise KeyError(machine_id)
        return machine
