"""Random Pods, events, faults, crashes and clock steps; when they stop, the invariants of design §10 hold."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from decimal import Decimal

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from nebula.domain.claim import Phase
from nebula.events.details import DetailType
from nebula.providers.errors import (
    AuthenticationError,
    ImagePullError,
    NoCapacityError,
    ProviderError,
    ProviderUnavailableError,
    QuotaExceededError,
    RateLimitedError,
    RequestRefusedError,
    UnsupportedAcceleratorError,
)
from nebula.providers.simulated import Behaviour, Call

from tests.support.tripwire import CrashError, Tripwire, wired
from tests.support.world import CLUSTER, World, pool_object, running

CANARY = "canary-7f3a-value"
BUDGET = Decimal(12)
#: What the provider promises; ``visible`` and ``lag`` below stay within it.
VISIBILITY = timedelta(seconds=36)
NAMES = st.sampled_from(["a", "b", "c"])
SECONDS = st.integers(0, 90).map(lambda n: timedelta(seconds=n))
FAULTS = st.sampled_from(
    [
        NoCapacityError("none left"),
        QuotaExceededError("quota"),
        UnsupportedAcceleratorError("not here"),
        AuthenticationError("bad key"),
        RateLimitedError("slow down", retry_after=timedelta(seconds=20)),
        RequestRefusedError("not like this"),
        ImagePullError("no such image"),
        ProviderUnavailableError("gateway timeout"),
    ]
)


class Lifecycle(RuleBasedStateMachine):
    """One pool with a budget for three instances, one provider, three Pod names."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(pool=pool_object("simulated", budgetPerHour=str(BUDGET)), visibility_delay=VISIBILITY)
        self.wire: Tripwire = wired(self.world)
        self.foreign = self.world.simulated.console.add_foreign()
        self.world.clock.advance(timedelta(hours=1))

    @initialize(boot=SECONDS, visible=st.integers(0, 30), lag=st.integers(0, 5), dying=SECONDS)
    def behave(self, boot: timedelta, visible: int, lag: int, dying: timedelta) -> None:
        self.world.simulated.behaviour = Behaviour(
            boot=boot,
            visible_after=timedelta(seconds=visible),
            list_lag=timedelta(seconds=lag),
            termination=dying,
            linger=timedelta(seconds=30),
        )

    def _try(self, what: object) -> None:
        """Do something that a crash or a cut line may interrupt."""
        try:
            what()  # type: ignore[operator]
        except (CrashError, ProviderError):
            self.wire.disarm()

    @rule(name=NAMES)
    def create(self, name: str) -> None:
        if self.world.pod(name) is None:
            container = {
                "name": "main",
                "image": "train:1",
                "env": [{"name": "TOKEN", "value": CANARY}],
                "resources": {"limits": {"nvidia.com/gpu": "1"}},
            }
            self.world.create_pod(name, containers=[container])

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        if self.world.pod(name) is not None:
            self.world.delete_pod(name)

    @rule(index=st.integers(0, 5), keep=st.booleans())
    def deliver_one(self, index: int, keep: bool) -> None:
        """Out of order, and perhaps once more later."""
        bus = self.world.collect()
        if bus:
            envelope = bus[index % len(bus)]
            if not keep:
                bus.remove(envelope)
            self._try(lambda: self.world.deliver(envelope))

    @rule()
    def deliver_all(self) -> None:
        self._try(self.world.pump)

    @rule()
    def lose_one(self) -> None:
        if self.world.collect():
            self.world.queue.pop()

    @rule(after=SECONDS)
    def tick(self, after: timedelta) -> None:
        self._try(lambda: self.world.tick(after=after, pump=False))

    @rule()
    def minute(self) -> None:
        self._try(lambda: self.world.minute(pump=False))

    @rule(back=SECONDS)
    def clock_steps_back(self, back: timedelta) -> None:
        self.world.clock.advance(-min(back, timedelta(seconds=5)))

    @rule(fault=FAULTS, after=st.booleans(), times=st.integers(1, 4))
    def provision_fails(self, fault: ProviderError, after: bool, times: int) -> None:
        lost_answer = after and isinstance(fault, ProviderUnavailableError)
        self.world.simulated.script.fail(Call.PROVISION, fault, after=lost_answer, times=times)

    @rule(call=st.sampled_from([Call.LIST, Call.GET, Call.FIND, Call.TERMINATE]), after=st.booleans())
    def call_fails(self, call: Call, after: bool) -> None:
        self.world.simulated.script.fail(call, ProviderUnavailableError("cut"), after=after)

    @rule(number=st.integers(1, 25), after=st.booleans())
    def crash_soon(self, number: int, after: bool) -> None:
        self.wire.arm(number, after=after)

    @rule(name=NAMES, late=st.booleans())
    def something_happens_during_the_next_create(self, name: str, late: bool) -> None:
        """A delete while the create is in flight, or a lease that runs out under it."""

        def meanwhile(call: Call, _subject: object) -> None:
            if call is not Call.PROVISION:
                return
            self.world.simulated.script.before_each(None)
            if late:
                self.world.clock.advance(timedelta(minutes=3))
                self.world.tick(after=timedelta(0))
                self.world.tick(after=timedelta(seconds=45))
                self.world.tick(after=timedelta(seconds=15))
            elif self.world.pod(name) is not None:
                self.world.delete_pod(name)
                self.world.pump()

        self.world.simulated.script.before_each(meanwhile)

    @precondition(lambda self: self.world.billed())
    @rule(how=st.sampled_from(["exit", "fail", "delete", "interrupt"]), index=st.integers(0, 3))
    def instance_ends(self, how: str, index: int) -> None:
        owned = self.world.billed()
        console, machine = self.world.simulated.console, owned[index % len(owned)]
        with contextlib.suppress(ValueError):  # it has ended already
            if how == "exit":
                console.exit(machine, 1)
            elif how == "fail":
                console.fail(machine, "container crashed")
            elif how == "delete":
                console.delete(machine)
            else:
                console.interrupt(machine)

    @rule(name=NAMES)
    def pod_is_announced_late(self, name: str) -> None:
        pod = self.world.pod(name)
        if pod is not None:
            self.world.announce(DetailType.POD_GATED, pod)
            self.world.announce(DetailType.POD_DELETED, pod)

    @invariant()
    def the_budget_holds(self) -> None:
        assert self.world.committed() <= BUDGET

    @invariant()
    def foreign_instances_are_untouched(self) -> None:
        assert self.foreign in [machine.id for machine in self.world.simulated.console.living()]

    @invariant()
    def nothing_secret_is_said(self) -> None:
        said = repr(self.world.telemetry.lines[-20:]) + repr(self.world.publisher.events[-20:])
        assert CANARY not in said

    def teardown(self) -> None:
        """The faults stop; within some minutes everything is as it should be."""
        self.wire.disarm()
        self.world.simulated.script.heal()
        self.world.simulated.script.before_each(None)
        self.world.simulated.mend_listings()
        self.world.clock.advance(timedelta(minutes=20))
        self.world.run(12)
        self._pods_and_instances_agree()
        assert CANARY not in repr(list(self.world.claims.live(CLUSTER)))

    def _pods_and_instances_agree(self) -> None:
        claims = list(self.world.claims.live(CLUSTER))
        held = {c.instance_id for c in claims if c.phase is Phase.RELEASED}
        assert set(self.world.billed()) == held, (claims, self.world.telemetry.lines[-10:])
        for claim in claims:
            pod = self.world.pod(claim.pod_name)
            assert pod is not None, claim
            assert pod["metadata"]["uid"] == claim.pod_uid
            assert claim.phase in (Phase.RELEASED, Phase.PENDING), claim
            if claim.phase is Phase.RELEASED:
                assert running(pod), (claim, pod["status"])
            else:
                shown = [c for c in pod["status"]["conditions"] if c["type"].endswith("/Released")]
                assert [c["reason"] for c in shown if c["reason"]], (claim, pod["status"])
        held_money = sum((c.committed_per_hour for c in claims), Decimal(0))
        assert self.world.committed() == held_money


Lifecycle.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestLifecycle = Lifecycle.TestCase
