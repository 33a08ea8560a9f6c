"""The memory twins under threads: what only one may win, one wins."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

from nebula.domain.credential import Credential, CredentialKey
from nebula.stores.blocks import Block
from nebula.stores.claims import BudgetExhaustedError, ConflictError
from nebula.stores.credentials import CredentialConflictError
from nebula.stores.memory_blocks import MemoryBlockStore
from nebula.stores.memory_claims import MemoryClaimStore
from nebula.stores.memory_credentials import MemoryCredentialStore

from tests.support.claims import CLUSTER, NOW, POOL, SECOND, pending, placed, terminated

WORKERS = 8


def in_parallel(work: Callable[[int], int]) -> int:
    """Run ``work`` in every worker at once; the sum of what it returns."""
    results: list[int] = []
    barrier = threading.Barrier(WORKERS)

    def run(worker: int) -> None:
        barrier.wait()
        results.append(work(worker))

    threads = [threading.Thread(target=run, args=(n,)) for n in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == WORKERS
    return sum(results)


def test_the_last_dollar_is_spent_once() -> None:
    store = MemoryClaimStore()

    def place(worker: int) -> int:
        won = 0
        for n in range(50):
            try:
                store.create(placed(f"{worker}-{n}", "0.25"), budget_limit=Decimal(10))
                won += 1
            except BudgetExhaustedError:
                continue
        return won

    assert in_parallel(place) == 40
    assert store.budget(CLUSTER, POOL).committed_per_hour == 10


def test_one_of_many_writers_takes_each_version() -> None:
    store = MemoryClaimStore()
    store.create(pending())

    def write(worker: int) -> int:
        won = 0
        for _ in range(50):
            read = store.get(pending().claim_id) or pending()
            try:
                store.save(read, read.model_copy(update={"reason": str(worker)}))
                won += 1
            except ConflictError:
                continue
        return won

    wins = in_parallel(write)
    final = store.get(pending().claim_id)
    assert final is not None
    assert final.version == 1 + wins


def test_each_due_claim_is_announced_once() -> None:
    store = MemoryClaimStore()
    for n in range(200):
        store.create(placed(f"pod-{n}", next_action_at=NOW))

    def announce(_: int) -> int:
        return sum(store.touch(due, NOW + 60 * SECOND) for due in store.due(NOW))

    assert in_parallel(announce) == 200
    assert store.due(NOW) == []


def test_blocks_and_credentials_keep_one_winner() -> None:
    blocks, credentials = MemoryBlockStore(), MemoryCredentialStore()
    key = CredentialKey(provider="runpod", account="a", fingerprint="f", generation=1)
    row = Credential(key=key, registry="r", created_at=NOW, last_used_at=NOW)

    def work(worker: int) -> int:
        for n in range(50):
            expires = NOW + timedelta(seconds=n * WORKERS + worker)
            blocks.put(Block(provider="runpod", reason="x", created_at=NOW, expires_at=expires))
        try:
            credentials.create(row)
        except CredentialConflictError:
            return 0
        return 1

    assert in_parallel(work) == 1
    (longest,) = blocks.active("runpod", NOW)
    assert longest.expires_at == NOW + timedelta(seconds=50 * WORKERS - 1)


def test_rows_written_are_counted_as_the_table_bills_them() -> None:
    store = MemoryClaimStore()
    claim = store.create(pending())
    assert store.writes == 1
    claim = store.save(claim, placed(next_action_at=NOW))
    assert store.writes == 3
    (due,) = store.due(NOW)
    store.touch(due, NOW + SECOND)
    store.touch(due, NOW + SECOND)
    assert store.writes == 4
    store.save(claim, terminated(claim))
    assert store.writes == 6
