"""The state machine of lives under faults: rules that a test runs on the stores of its choice."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule
from nebula.events.details import DetailType
from nebula.events.envelope import parse_envelope
from nebula.providers.errors import (
    ImagePullError,
    InsufficientBalanceError,
    InvalidWorkloadError,
    ProviderError,
    ProviderUnavailableError,
)
from nebula.providers.simulated import DEFAULT_CAPABILITIES, Behaviour, Call
from nebula.workflows.abandon import NotAbandonedError, abandon
from nebula.workflows.interruption import interrupted

from tests.support.chaos import PROVISION, Way
from tests.support.judged_world import CANARY, VISIBILITY, JudgedWorld
from tests.support.mischief import force_delete
from tests.support.tripwire import CrashError

NAMES = st.sampled_from(["a", "b", "c"])
SECONDS = st.integers(0, 90).map(lambda n: timedelta(seconds=n))
#: Every class of ``providers.errors`` that a create may end in.
FAULTS = st.sampled_from(
    [
        *PROVISION,
        Way("image", lambda: ImagePullError("no such image")),
        Way("invalid workload", lambda: InvalidWorkloadError("cannot be expressed")),
        Way("balance", lambda: InsufficientBalanceError("no money")),
    ]
)
CALLS = st.sampled_from([Call.LIST, Call.GET, Call.FIND, Call.TERMINATE, Call.ACCOUNT])


class Lifecycle(JudgedWorld):
    """Three Pod names; whatever may happen to their Pods, instances, events and calls is a rule.

    No rule has a precondition: what is drawn next must not depend on what threads did before.
    """

    @initialize(boot=SECONDS, visible=st.integers(0, 30), lag=st.integers(0, 5), dying=SECONDS, queues=st.booleans())
    def behave(self, boot: timedelta, visible: int, lag: int, dying: timedelta, queues: bool) -> None:
        self.world.simulated.behaviour = Behaviour(
            boot=boot,
            visible_after=timedelta(seconds=visible),
            list_lag=timedelta(seconds=lag),
            termination=dying,
            linger=timedelta(seconds=30),
        )
        update = {"visibility_delay": VISIBILITY, "queues": queues}
        self.world.simulated._capabilities = DEFAULT_CAPABILITIES.model_copy(update=update)
        self._note("queueing provider" if queues else "immediate provider")
        self._note("stale list", bool(lag))
        self.create("a")
        self.create("b")
        self.world.pump()

    def _try(self, what: Callable[[], object]) -> None:
        """Do something that a crash or a fault may interrupt."""
        try:
            with self.chaos.let_loose():
                what()
        except CrashError:
            self._note("crash")
        except ProviderError:
            self._note("provider fault that rises")
        except Exception as error:  # a function may fail in any way while its calls do
            if not self.chaos.share:
                raise
            self._note(f"failed call: {type(error).__name__}")
        self.wire.disarm()

    # People

    @rule(name=NAMES)
    def apply(self, name: str) -> None:
        self.create(name)

    def create(self, name: str) -> None:
        """A Pod of that name, if there is none."""
        if self.world.pod(name) is None:
            container = {
                "name": "main",
                "image": "train:1",
                "env": [{"name": "TOKEN", "value": CANARY}],
                "resources": {"limits": {"nvidia.com/gpu": "1"}},
            }
            self._note("same name again", any(claim.pod_name == name for claim in self._claims()))
            self.world.create_pod(name, containers=[container])

    @rule(name=NAMES, force=st.booleans())
    def delete(self, name: str, force: bool) -> None:
        if self.world.pod(name) is None:
            return
        if force:
            force_delete(self.world, name)
        else:
            self.world.delete_pod(name)

    @rule(name=NAMES, ports=st.sampled_from(["none", None]))
    def edit(self, name: str, ports: str | None) -> None:
        """A field that provisioning uses changes, before or after it was used."""
        if self.world.pod(name) is not None:
            annotations = {"nebula.inftyai.com/ingress-ports": ports}
            self.people.patch_pod("default", name, {"metadata": {"annotations": annotations}})
            self._note("edit")

    @rule(name=NAMES)
    def operator_abandons(self, name: str) -> None:
        claim = next((one for one in self._claims() if one.live and one.pod_name == name), None)
        if claim is not None:
            self._note("abandoned with an instance", claim.instance_id is not None)
            with contextlib.suppress(NotAbandonedError):
                self._try(lambda: abandon(self.world.services("cli"), claim.claim_id, "test"))

    # The bus and the schedule

    @rule(index=st.integers(0, 5), keep=st.booleans())
    def deliver_one(self, index: int, keep: bool) -> None:
        """Out of order, and perhaps once more later."""
        bus = self.world.collect()
        if bus:
            envelope = bus[index % len(bus)]
            self._note("event out of order", index % len(bus) > 0)
            self._note("event twice", keep)
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
            self._note("event lost")

    @rule(name=NAMES)
    def pod_is_announced_late(self, name: str) -> None:
        pod = self.world.pod(name)
        if pod is not None:
            self.world.announce(DetailType.POD_GATED, pod)
            self.world.announce(DetailType.POD_DELETED, pod)

    @rule(after=SECONDS)
    def tick(self, after: timedelta) -> None:
        self._try(lambda: self.world.tick(after=after, pump=False))

    @rule()
    def minute(self) -> None:
        self._try(lambda: self.world.minute(pump=False))

    @rule(minutes=st.integers(1, 3))
    def time_passes(self, minutes: int) -> None:
        self._try(lambda: self.world.run(minutes))

    @rule(back=st.integers(1, 5))
    def clock_steps_back(self, back: int) -> None:
        self.world.clock.advance(-timedelta(seconds=back))
        self._note("clock back")

    # Faults

    @rule(fault=FAULTS, times=st.integers(1, 4))
    def provision_fails(self, fault: Way, times: int) -> None:
        self.world.simulated.script.fail(Call.PROVISION, fault.make(), after=fault.after, times=times)
        self._note(f"create: {fault.name}")

    @rule(call=CALLS, after=st.booleans())
    def call_fails(self, call: Call, after: bool) -> None:
        self.world.simulated.script.fail(call, ProviderUnavailableError("cut"), after=after)

    @rule(shown=st.integers(0, 2), mended=st.booleans())
    def lists_break_off(self, shown: int, mended: bool) -> None:
        if mended:
            self.world.simulated.mend_listings()
        else:
            self.world.simulated.break_listing(shown=shown)
            self._note("partial list")

    @rule(seed=st.integers(0, 999), foul=st.booleans())
    def weather_changes(self, seed: int, foul: bool) -> None:
        """A share of the calls of every edge fails from now on, or none does."""
        self.chaos.seed, self.chaos.share = seed, 0.1 if foul else 0.0
        self._note("foul weather", foul)

    @rule(number=st.integers(1, 25), after=st.booleans())
    def crash_soon(self, number: int, after: bool) -> None:
        self.wire.arm(number, after=after)

    @rule(name=NAMES, late=st.booleans())
    def something_happens_during_a_create(self, name: str, late: bool) -> None:
        """A delete while the create is in flight, or a lease that runs out under it."""

        def meanwhile(call: Call, _subject: object) -> None:
            if call is not Call.PROVISION:
                return
            self.world.simulated.script.before_each(None)
            if late:
                self._note("lease lost under a create")
                self.world.clock.advance(timedelta(minutes=3))
                for after in (0, 45, 15):
                    self.world.tick(after=timedelta(seconds=after))
            elif self.world.pod(name) is not None:
                self._note("deleted during a create")
                self.world.delete_pod(name)
                self.world.pump()

        self.world.simulated.script.before_each(meanwhile)
        self.create(name)
        self._try(self.world.pump)

    @rule(how=st.sampled_from(["exit", "fail", "delete", "interrupt"]), index=st.integers(0, 3))
    def instance_ends(self, how: str, index: int) -> None:
        owned = self.world.billed()
        if not owned:
            return
        console, machine = self.world.simulated.console, owned[index % len(owned)]
        self._note(f"instance ends: {how}")
        if how == "interrupt":
            warning = parse_envelope(console.interrupt(machine))
            self._try(lambda: interrupted(self.world.services("provisioning"), warning))
            return
        with contextlib.suppress(ValueError):  # it has ended already
            if how == "exit":
                console.exit(machine, 1)
            elif how == "fail":
                console.fail(machine, "container crashed")
            else:
                console.delete(machine)
