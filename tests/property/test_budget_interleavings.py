"""A NodePool's committed price never exceeds its budget and is never lost count of.

Actors read claims and write from what they read, in any order; stale writes are refused.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import boto3
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from moto import mock_aws
from nebula.aws import AwsClients
from nebula.domain.claim import AttemptOutcome, Claim, Phase
from nebula.stores.claims import Budget, BudgetExhaustedError, ClaimStore, ConflictError
from nebula.stores.dynamo_claims import DynamoClaimStore
from nebula.stores.memory_claims import MemoryClaimStore

from tests.support.claims import CLUSTER, POOL, attempt, candidate, pending, terminated
from tests.support.tables import create_tables

LIMIT = Decimal("5.00")
NAMES = st.sampled_from(["a", "b", "c", "d"])
ACTORS = st.sampled_from(["x", "y"])
PRICES = st.sampled_from(["0.01", "1.25", "2.50", "5.00", "5.01"])


class Interleavings(RuleBasedStateMachine):
    """Two actors, four claims, one NodePool."""

    store: ClaimStore

    def open_store(self) -> ClaimStore:
        return MemoryClaimStore()

    @initialize()
    def start(self) -> None:
        self.store = self.open_store()
        self.read: dict[tuple[str, str], Claim] = {}
        self.counters: dict[str, Budget] = {}
        self.recounts: dict[str, Decimal] = {}

    @rule(actor=ACTORS, name=NAMES)
    def reads(self, actor: str, name: str) -> None:
        found = self.store.get(pending(name).claim_id)
        if found is not None:
            self.read[actor, name] = found

    @rule(actor=ACTORS, name=NAMES, price=PRICES)
    def creates_placed(self, actor: str, name: str, price: str) -> None:
        claim = pending(name, phase=Phase.PLACED, candidate=candidate(price))
        try:
            self.read[actor, name] = self.store.create(claim, budget_limit=LIMIT)
        except (ConflictError, BudgetExhaustedError):
            self.reads(actor, name)

    @rule(actor=ACTORS, name=NAMES, price=PRICES)
    def places(self, actor: str, name: str, price: str) -> None:
        self.writes(actor, name, phase=Phase.PLACED, candidate=candidate(price))

    @rule(actor=ACTORS, name=NAMES)
    def takes_lease(self, actor: str, name: str) -> None:
        claim = self.read.get((actor, name))
        if claim is not None and claim.candidate is not None and claim.phase is Phase.PLACED:
            made = attempt(len(claim.attempts) + 1, str(claim.candidate.reserve_per_hour))
            self.writes(actor, name, phase=Phase.PROVISIONING, attempts=(*claim.attempts, made))

    @rule(actor=ACTORS, name=NAMES)
    def confirms_gone(self, actor: str, name: str) -> None:
        claim = self.read.get((actor, name))
        if claim is not None and claim.attempts:
            gone = claim.attempts[0].model_copy(update={"outcome": AttemptOutcome.GONE})
            self.writes(actor, name, phase=Phase.PENDING, attempts=(gone, *claim.attempts[1:]))

    @rule(actor=ACTORS, name=NAMES)
    def ends(self, actor: str, name: str) -> None:
        claim = self.read.get((actor, name))
        if claim is not None:
            self.writes(actor, name, **terminated(claim).model_dump(include={"phase", "next_action_at"}))

    def writes(self, actor: str, name: str, **changes: Any) -> None:
        previous = self.read.get((actor, name))
        if previous is None or not previous.live:
            return
        try:
            written = self.store.save(previous, previous.model_copy(update=changes), budget_limit=LIMIT)
            self.read[actor, name] = written
        except ConflictError as conflict:
            self.read[actor, name] = conflict.current or self.missing(name)
        except BudgetExhaustedError:
            assert previous.committed_per_hour < previous.model_copy(update=changes).committed_per_hour

    def missing(self, name: str) -> Claim:
        raise AssertionError(f"the row of {name} vanished")

    @rule(actor=ACTORS)
    def counts(self, actor: str) -> None:
        self.counters[actor] = self.store.budget(CLUSTER, POOL)
        self.recounts[actor] = self.held()

    @rule(actor=ACTORS)
    def corrects(self, actor: str) -> None:
        if actor in self.counters:
            self.store.correct_budget(self.counters.pop(actor), self.recounts.pop(actor))

    def held(self) -> Decimal:
        return sum((claim.committed_per_hour for claim in self.store.live(CLUSTER)), Decimal(0))

    @invariant()
    def counter_is_true_and_within_the_budget(self) -> None:
        committed = self.store.budget(CLUSTER, POOL).committed_per_hour
        assert committed == self.held()
        assert committed <= LIMIT


class DynamoInterleavings(Interleavings):
    """The same on DynamoDB."""

    def open_store(self) -> ClaimStore:
        self.aws = mock_aws()
        self.aws.start()
        client = AwsClients(SESSION).dynamodb
        create_tables(client)
        return DynamoClaimStore(client, "claims")

    def teardown(self) -> None:
        self.aws.stop()


SESSION = boto3.session.Session("testing", "testing", region_name="eu-central-1")

TestMemory = Interleavings.TestCase
TestMemory.settings = settings(max_examples=300, stateful_step_count=25, deadline=None)
TestDynamo = DynamoInterleavings.TestCase
TestDynamo.settings = settings(
    max_examples=20, stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
