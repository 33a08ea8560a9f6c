"""A thousand Pods' lives while everything fails now and then: who makes them, what happens to them, what must hold."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from nebula.clock import ManualClock
from nebula.domain.claim import Claim
from nebula.events.envelope import parse_envelope
from nebula.providers.simulated import DEFAULT_CAPABILITIES, Behaviour, SimulatedProvider
from nebula.workflows.interruption import INTERRUPTION_TYPES, interrupted
from nebula.workflows.orphans import OrphanPolicy
from nebula.workflows.poll import scheduled, tick

from local.kubernetes.resources import PODS
from tests.support.chaos import RETRIED, Chaos
from tests.support.tripwire import CrashError
from tests.support.world import MINUTE, START, World, pool_object

CANARY = "canary-91d2-value"
PROVIDERS = ("sim-a", "sim-b", "sim-c", "sim-d")
SCOPES = ("east", "west")
VISIBILITY = timedelta(seconds=36)
#: SQS gives a message up after so many receives.
RECEIVES = 5
TICK = timedelta(seconds=15)
BEHAVIOUR = Behaviour(
    boot=timedelta(seconds=20),
    visible_after=timedelta(seconds=25),
    list_lag=timedelta(seconds=5),
    termination=timedelta(seconds=10),
    linger=timedelta(seconds=30),
)


@dataclass
class Message:
    """An event on its way, how often it was received, and when it may be received again."""

    body: dict[str, Any]
    receives: int = 0
    not_before: datetime = START


@dataclass
class Tally:
    """What the storm did, for a test that wants to know that it was one."""

    failed: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    acts: Counter[str] = field(default_factory=Counter)


def seeded_uids(seed: int) -> Callable[[], UUID]:
    """Pod uids that are the same in each run."""
    chance = random.Random(seed)
    return lambda: UUID(int=chance.getrandbits(128), version=4)


class Storm:
    """One installation with four providers of two scopes each; everything random comes from ``seed``."""

    def __init__(self, seed: int, *, budget: Decimal, share: float = 0.1, crashes: float = 0.005) -> None:
        self.random = random.Random(seed)
        clock = ManualClock(START)
        capabilities = DEFAULT_CAPABILITIES.model_copy(update={"visibility_delay": VISIBILITY})
        self.simulated = [
            SimulatedProvider(
                clock, name=name, capabilities=capabilities, behaviour=BEHAVIOUR, scopes=SCOPES, per_region=True
            )
            for name in PROVIDERS
        ]
        entries = [{"name": name, "regions": list(SCOPES), "weight": 1} for name in PROVIDERS]
        pool = pool_object(*PROVIDERS, budgetPerHour=str(budget), strategy="Weighted", providers=entries)
        self.world = World(*self.simulated, clock=clock, pool=pool)
        self.budget = budget
        self.foreign = [provider.console.add_foreign(scope="east") for provider in self.simulated]
        self.tally = Tally()
        self.messages: deque[Message] = deque()
        self.chaos = Chaos(seed, share=share, crashes=crashes)
        for provider in self.simulated:
            self.chaos.watch("provider", provider)
        for kind in ("claims", "blocks", "sightings", "publisher", "ticks"):
            self.chaos.watch(kind, getattr(self.world, kind))
        self.chaos.watch("ledger reads", self.world.claims, part=RETRIED)
        self.chaos.watch("api", self.world.api, part=RETRIED)
        self.chaos.watch_wire(self.world.emulator)

    # What people and providers do

    def create(self, names: Iterable[str]) -> None:
        """Apply those of the Pods that do not exist."""
        for name in names:
            if self.world.pod(name) is not None:
                continue
            container = {
                "name": "main",
                "image": "train:1",
                "env": [{"name": "TOKEN", "value": CANARY}],
                "resources": {"limits": {"nvidia.com/gpu": "1"}},
            }
            self.world.create_pod(name, containers=[container])
            self.tally.acts["created"] += 1

    def delete(self, names: Iterable[str]) -> None:
        """Delete those of the Pods that exist."""
        for name in names:
            if self.world.pod(name) is not None:
                self.world.delete_pod(name)
                self.tally.acts["deleted"] += 1

    def end_instances(self, number: int) -> None:
        """Some instances exit, break, are deleted by hand or taken back."""
        for provider in self.simulated:
            owned = provider.console.owned()
            for machine in self.random.sample(owned, min(number, len(owned))):
                self._end(provider, machine.id, self.random.choice(("exit", "fail", "delete", "interrupt")))

    def _end(self, provider: SimulatedProvider, machine: str, how: str) -> None:
        console = provider.console
        if console.owned() and how in ("exit", "fail"):
            try:
                console.exit(machine, 1) if how == "exit" else console.fail(machine, "broke down")
            except ValueError:  # it has ended already
                return
        elif how == "delete":
            console.delete(machine)
        else:
            warning = console.interrupt(machine, notice=timedelta(seconds=20))
            if self.random.random() < 0.7:
                self.messages.append(Message(warning))
        self.tally.acts[f"instance {how}"] += 1

    def tamper_with_lists(self) -> None:
        """Some scopes cannot be listed to the end for now; others can again."""
        for provider in self.simulated:
            provider.mend_listings()
            if self.random.random() < 0.3:
                provider.break_listing(self.random.choice(SCOPES), shown=self.random.randrange(20))
                self.tally.acts["partial list"] += 1

    # The bus

    def deliver(self, rounds: int = 4) -> None:
        """Deliver what waits, reordered; some of it is lost, some comes twice or late, what fails comes again."""
        for _ in range(rounds):
            self._collect()
            batch = list(self.messages)
            self.messages.clear()
            self.random.shuffle(batch)
            for message in batch:
                self._receive(message)

    def _collect(self) -> None:
        now = self.world.clock.now()
        faulty = self.chaos.share > 0
        for body in self.world.collect():
            luck = self.random.random() if faulty else 1.0
            if luck < 0.03:
                self.tally.events["lost"] += 1
                continue
            late = timedelta(seconds=self.random.randrange(200)) if luck < 0.08 else timedelta(0)
            self.tally.events["late"] += luck < 0.08
            self.messages.append(Message(body, not_before=now + late))
            if 0.08 <= luck < 0.13:
                self.tally.events["twice"] += 1
                self.messages.append(Message(body, not_before=now + timedelta(seconds=self.random.randrange(90))))
        self.world.queue.clear()

    def _receive(self, message: Message) -> None:
        now = self.world.clock.now()
        if message.not_before > now:
            self.messages.append(message)
            return
        message.receives += 1
        if self._survives(lambda: self._act(message.body)):
            return
        message.not_before = now + timedelta(seconds=60)
        if message.receives < RECEIVES:
            self.messages.append(message)
        else:
            self.tally.events["dead letter"] += 1

    def _act(self, body: dict[str, Any]) -> None:
        if body["detail-type"] in INTERRUPTION_TYPES:
            interrupted(self.world.services("provisioning"), parse_envelope(body))
        else:
            self.world.deliver(body)

    def _survives(self, what: Callable[[], object]) -> bool:
        """Run one function call; False when it died or failed, as Lambda would see it."""
        try:
            with self.chaos.let_loose():
                what()
        except (CrashError, Exception) as error:
            if not self.chaos.share:
                raise
            self.tally.failed[type(error).__name__] += 1
            return False
        return True

    # The schedule

    def minute(self) -> None:
        """Three ticks, then the scheduled run with its sweep; the bus is served in between."""
        for number in range(4):
            self.world.clock.advance(TICK)
            self._survives(self._sweep if number == 3 else self._tick)
            self.deliver()

    def _tick(self) -> None:
        now = self.world.clock.now()
        tick(self.world.services("status_polling"), due_at=now, until=now + MINUTE)

    def _sweep(self) -> None:
        until = self.world.clock.now() + MINUTE
        scheduled(self.world.services("status_polling"), policy=OrphanPolicy(terminate=True), until=until)

    def calm(self) -> None:
        """Every fault stops."""
        self.chaos.calm()
        for provider in self.simulated:
            provider.mend_listings()

    # What there is

    def pods(self) -> list[dict[str, Any]]:
        """Every Pod as it stands."""
        return [record.object for record in self.world.emulator.store.records(PODS)]

    def billed(self) -> dict[str, str]:
        """Claim id by the id of each owned instance that is billed."""
        return {
            machine.id: machine.mark.claim_id
            for provider in self.simulated
            for machine in provider.console.owned()
            if machine.mark is not None
        }

    def living(self) -> set[str]:
        """Ids of everything that is billed, foreign instances included."""
        return {machine.id for provider in self.simulated for machine in provider.console.living()}

    def doubles(self) -> list[str]:
        """Claims for which more than one instance is billed."""
        return [claim for claim, number in Counter(self.billed().values()).items() if number > 1]

    def strays(self) -> list[str]:
        """Instances that are billed although the Pod that they were made for is gone or has ended."""
        ended = ("Succeeded", "Failed")
        alive = {pod["metadata"]["uid"] for pod in self.pods() if pod["status"].get("phase") not in ended}
        wanted = {claim.claim_id for claim in self.claims() if claim.pod_uid in alive}
        return [instance for instance, claim in self.billed().items() if claim not in wanted]

    def committed(self) -> Decimal:
        """USD per hour that the pool's counter holds."""
        return self.world.committed()

    def claims(self) -> list[Claim]:
        """Every claim ever made."""
        return self.world.claims.all()
