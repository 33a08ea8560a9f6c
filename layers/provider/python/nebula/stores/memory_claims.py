"""The claims ledger in memory: for tests, the benchmark and property tests. Thread-safe.

Kept as plain dicts that mirror the table's sparse indexes, so that a call costs what it returns and
not what the ledger holds (``due`` alone looks at every claim that owes an action).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from threading import RLock

from nebula.domain.claim import Claim
from nebula.domain.unreadable import UnreadableClaim, UnreadableClaimError
from nebula.stores.budgeting import CounterChange, counter_changes
from nebula.stores.claims import Budget, BudgetExhaustedError, ConflictError, DueClaim


class MemoryClaimStore:
    """See ``ClaimStore``. Index reads are never stale here; no caller may rely on it.

    ``writes`` counts rows written, the way DynamoDB bills them: one per claim or counter row.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._claims: dict[str, Claim] = {}
        self._budgets: dict[tuple[str, str], Budget] = {}
        self._due: dict[str, datetime] = {}
        self._live: dict[str, dict[str, None]] = {}
        self._instances: dict[str, str] = {}
        self._credentials: dict[str, dict[str, None]] = {}
        self._newer: dict[str, str] = {}
        self.writes = 0

    def get(self, claim_id: str) -> Claim | None:
        """See ``ClaimStore.get``."""
        with self._lock:
            return self._read(claim_id)

    def create(self, claim: Claim, *, budget_limit: Decimal | None = None) -> Claim:
        """See ``ClaimStore.create``."""
        with self._lock:
            current = self._read(claim.claim_id)
            if current is not None:
                raise ConflictError(f"claim {claim.claim_id} exists", current)
            self._commit(None, claim, budget_limit)
            return claim

    def save(self, previous: Claim, claim: Claim, *, budget_limit: Decimal | None = None) -> Claim:
        """See ``ClaimStore.save``."""
        if previous.claim_id != claim.claim_id:
            raise ValueError(f"claim {claim.claim_id} does not replace {previous.claim_id}")
        with self._lock:
            current = self._read(claim.claim_id)
            if current is None or (current.version, current.phase) != (previous.version, previous.phase):
                raise ConflictError(f"claim {claim.claim_id} moved", current)
            written = claim.model_copy(update={"version": previous.version + 1})
            self._commit(previous, written, budget_limit)
            return written

    def touch(self, due: DueClaim, next_action_at: datetime) -> bool:
        """See ``ClaimStore.touch``."""
        with self._lock:
            current = self._claims.get(due.claim_id)
            if current is None:
                return False
            read = (due.version, due.phase, due.next_action_at)
            if (current.version, self._newer.get(due.claim_id, current.phase), current.next_action_at) != read:
                return False
            self._put(current.model_copy(update={"next_action_at": next_action_at}))
            return True

    def live(self, cluster: str, unreadable: list[UnreadableClaim] | None = None) -> Iterator[Claim]:
        """See ``ClaimStore.live``; a snapshot."""
        with self._lock:
            ids = self._live.get(cluster, {})
            for claim_id in self._newer.keys() & ids.keys():
                if unreadable is None:
                    self._read(claim_id)
                else:
                    unreadable.append(self._told(self._claims[claim_id]))
            return iter([self._claims[claim_id] for claim_id in ids if claim_id not in self._newer])

    def any_live(self, cluster: str) -> bool:
        """See ``ClaimStore.any_live``."""
        with self._lock:
            return bool(self._live.get(cluster))

    def due(self, now: datetime, limit: int = 200) -> list[DueClaim]:
        """See ``ClaimStore.due``."""
        with self._lock:
            come = ((at, claim_id) for claim_id, at in self._due.items() if at <= now)
            return [self._due_claim(self._claims[claim_id], at) for at, claim_id in heapq.nsmallest(limit, come)]

    def find_by_instance(self, instance_id: str) -> Claim | None:
        """See ``ClaimStore.find_by_instance``."""
        with self._lock:
            claim_id = self._instances.get(instance_id)
            return None if claim_id is None else self._read(claim_id)

    def find_by_credential(self, credential_key: str) -> Sequence[Claim | UnreadableClaim]:
        """See ``ClaimStore.find_by_credential``."""
        with self._lock:
            return [self._row(claim_id) for claim_id in self._credentials.get(credential_key, ())]

    def budget(self, cluster: str, node_pool: str) -> Budget:
        """See ``ClaimStore.budget``."""
        with self._lock:
            return self._budgets.get((cluster, node_pool)) or Budget(cluster=cluster, node_pool=node_pool)

    def correct_budget(self, read: Budget, committed_per_hour: Decimal) -> bool:
        """See ``ClaimStore.correct_budget``."""
        with self._lock:
            if self.budget(read.cluster, read.node_pool).version != read.version:
                return False
            self._set_budget(read, committed_per_hour)
            return True

    def all(self) -> list[Claim]:
        """Every claim, Terminated ones included; for assertions of tests only."""
        with self._lock:
            return list(self._claims.values())

    def make_newer(self, claim_id: str, phase: str = "") -> None:
        """Make a row one that only a newer release can read, in a ``phase`` of its own if given; for tests only."""
        with self._lock:
            self._newer[claim_id] = phase or str(self._claims[claim_id].phase)

    def make_older(self, claim_id: str) -> None:
        """The newer release is back and leaves a row that this one can read; for tests only."""
        with self._lock:
            del self._newer[claim_id]

    def _row(self, claim_id: str) -> Claim | UnreadableClaim:
        claim = self._claims[claim_id]
        return self._told(claim) if claim_id in self._newer else claim

    def _told(self, claim: Claim) -> UnreadableClaim:
        told = {
            "claim_id": claim.claim_id,
            "cluster": claim.cluster,
            "node_pool": claim.node_pool,
            "provider": claim.candidate.provider if claim.candidate else None,
            "committed_per_hour": claim.committed_per_hour,
        }
        return UnreadableClaim.told_by(told, ["phase"])

    def _read(self, claim_id: str) -> Claim | None:
        row = self._row(claim_id) if claim_id in self._claims else None
        if isinstance(row, UnreadableClaim):
            raise UnreadableClaimError(row)
        return row

    def _commit(self, previous: Claim | None, claim: Claim, limit: Decimal | None) -> None:
        changes = counter_changes(previous, claim, limit)
        for change in changes:
            self._check_room(change)
        for change in changes:
            counter = self.budget(change.cluster, change.node_pool)
            self._set_budget(counter, counter.committed_per_hour + change.delta)
        self._put(claim)

    def _check_room(self, change: CounterChange) -> None:
        committed = self.budget(change.cluster, change.node_pool).committed_per_hour
        if change.room is not None and committed > change.room:
            raise BudgetExhaustedError(f"NodePool {change.node_pool}: {change.delta} USD/h more exceeds its budget")

    def _set_budget(self, counter: Budget, committed: Decimal) -> None:
        update = {"committed_per_hour": committed, "version": counter.version + 1}
        self._budgets[counter.cluster, counter.node_pool] = counter.model_copy(update=update)
        self.writes += 1

    def _put(self, claim: Claim) -> None:
        before = self._claims.get(claim.claim_id)
        if before is not None:
            self._unindex(before)
        self._claims[claim.claim_id] = claim
        self._index(claim)
        self.writes += 1

    def _index(self, claim: Claim) -> None:
        if claim.instance_id is not None:
            self._instances[claim.instance_id] = claim.claim_id
        if not claim.live:
            return
        self._live.setdefault(claim.cluster, {})[claim.claim_id] = None
        if claim.next_action_at is not None:
            self._due[claim.claim_id] = claim.next_action_at
        if claim.credential_key is not None:
            self._credentials.setdefault(claim.credential_key, {})[claim.claim_id] = None

    def _unindex(self, claim: Claim) -> None:
        self._due.pop(claim.claim_id, None)
        self._live.get(claim.cluster, {}).pop(claim.claim_id, None)
        if claim.instance_id is not None:
            self._instances.pop(claim.instance_id, None)
        if claim.credential_key is not None:
            self._credentials.get(claim.credential_key, {}).pop(claim.claim_id, None)

    def _due_claim(self, claim: Claim, at: datetime) -> DueClaim:
        return DueClaim(
            claim_id=claim.claim_id,
            phase=self._newer.get(claim.claim_id, claim.phase),
            version=claim.version,
            next_action_at=at,
            cluster=claim.cluster,
            provider=claim.candidate.provider if claim.candidate else "",
            reason=claim.reason,
        )
