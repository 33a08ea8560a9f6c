"""What a state machine of lives asserts, at every step and once its faults have stopped."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from decimal import Decimal
from typing import Any, ClassVar

from hypothesis.stateful import RuleBasedStateMachine, invariant
from nebula.domain.claim import AttemptOutcome, Phase
from nebula.lifecycle.observation import BELIEVED_AFTER

from local.kubernetes.adapter import client
from tests.support.chaos import RETRIED, Chaos
from tests.support.tripwire import Tripwire, wired
from tests.support.world import CLUSTER, World, pool_object, running

CANARY = "canary-7f3a-value"
BUDGET = Decimal(12)
#: What the provider promises; what a machine makes of it stays within.
VISIBILITY = timedelta(seconds=36)


class JudgedWorld(RuleBasedStateMachine):
    """One pool with a budget for three instances, one provider of two tiers; rules come with the subclass.

    ``happened`` counts what the runs of a class did, for a test that asks whether they did it.
    """

    happened: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        pool = pool_object("simulated", budgetPerHour=str(BUDGET), capacityTypes=["OnDemand", "Spot"])
        self.world = World(pool=pool, visibility_delay=VISIBILITY, **self.stores())
        self.people = client(self.world.emulator, CLUSTER)
        self.wire: Tripwire = wired(self.world)
        self.chaos = Chaos(0, share=0.0, crashes=0.0)
        self.chaos.watch("provider", self.world.simulated)
        for kind in ("claims", "blocks", "sightings", "publisher", "ticks"):
            self.chaos.watch(kind, getattr(self.world, kind))
        self.chaos.watch("ledger reads", self.world.claims, part=RETRIED)
        self.chaos.watch("api", self.world.api, part=RETRIED)
        self.chaos.watch_wire(self.world.emulator)
        self.foreign = self.world.simulated.console.add_foreign()
        self.world.clock.advance(timedelta(hours=1))

    def stores(self) -> dict[str, Any]:
        """The ledgers to run on; memory by default."""
        return {}

    def _note(self, what: str, really: bool = True) -> None:
        self.happened[what] += really

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
        """The faults stop. What was put off comes due; eight ticks later nothing is wrong, soon all is well."""
        self.happened.update(self.chaos.injected)
        self.chaos.calm()
        self.wire.disarm()
        self.world.simulated.script.heal()
        self.world.simulated.script.before_each(None)
        self.world.simulated.mend_listings()
        self.world.clock.advance(timedelta(minutes=20))
        self.world.run(2)
        self._let_a_mass_vanishing_be_believed()
        self._nothing_is_wrong()
        self.world.run(10)
        self._all_is_well()
        self._note("failover of an instance that existed", any(map(_failed_over, self._claims())))

    def _let_a_mass_vanishing_be_believed(self) -> None:
        """Most Pods gone at once, and no event told of it: that alarms first, and is believed minutes later."""
        if any(claim.pod_absent_since is not None for claim in self._claims()):
            assert self.world.telemetry.total("ClusterUnknown") > 0
            self._note("mass vanishing")
            self.world.run(int(BELIEVED_AFTER / timedelta(minutes=1)) + 1)

    def _claims(self) -> list[Any]:
        return list(self.world.claims.live(CLUSTER))

    def _nothing_is_wrong(self) -> None:
        """After eight ticks: at most one instance per claim, none without its Pod, but for those told to end."""
        kept = [m for m in self.world.simulated.console.owned() if m.terminated_at is None]
        marks = [m.mark.claim_id for m in kept if m.mark is not None]
        claims = {claim.claim_id: claim for claim in self._claims()}
        assert len(set(marks)) == len(marks), marks
        for claim_id in marks:
            pod = self.world.pod(claims[claim_id].pod_name)
            assert pod is not None
            assert pod["metadata"]["uid"] == claims[claim_id].pod_uid
        assert self.world.committed() <= BUDGET

    def _all_is_well(self) -> None:
        claims = self._claims()
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
        assert self.world.committed() == sum((c.committed_per_hour for c in claims), Decimal(0))
        assert CANARY not in repr(claims)


def _failed_over(claim: Any) -> bool:
    return len(claim.attempts) > 1 and any(
        one.outcome is AttemptOutcome.GONE and one.instance_id is not None for one in claim.attempts[:-1]
    )
