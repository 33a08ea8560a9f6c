"""What every claims ledger does with the NodePools' budgets: counted in the same write as the claim."""

from __future__ import annotations

from decimal import Decimal

import pytest
from nebula.domain.claim import AttemptOutcome, Phase
from nebula.stores.claims import Budget, BudgetExhaustedError, ClaimStore, ConflictError

from tests.support.claims import CLUSTER, POOL, attempt, pending, placed, provisioned, terminated

LIMIT = Decimal("5.00")


def committed(claims: ClaimStore, pool: str = POOL) -> Decimal:
    return claims.budget(CLUSTER, pool).committed_per_hour


def test_no_counter_is_zero(claims: ClaimStore) -> None:
    assert claims.budget(CLUSTER, POOL) == Budget(cluster=CLUSTER, node_pool=POOL)


def test_a_life_takes_and_gives_back(claims: ClaimStore) -> None:
    claim = claims.create(pending())
    assert committed(claims) == 0
    claim = claims.save(claim, placed(), budget_limit=LIMIT)
    assert committed(claims) == Decimal("2.50")
    version = claims.budget(CLUSTER, POOL).version
    claim = claims.save(claim, provisioned())
    assert claims.budget(CLUSTER, POOL).version == version
    claims.save(claim, terminated(claim))
    assert committed(claims) == 0
    assert claims.budget(CLUSTER, POOL).version == version + 1


def test_an_unconfirmed_attempt_keeps_counting_beside_the_next_one(claims: ClaimStore) -> None:
    claim = claims.create(provisioned(reserve="2.00"))
    both = (attempt(1, "2.00", outcome=AttemptOutcome.UNKNOWN), attempt(2, "1.25"))
    claim = claims.save(claim, provisioned(attempts=both))
    assert committed(claims) == Decimal("3.25")
    claims.save(claim, provisioned(attempts=(attempt(1, "2.00", outcome=AttemptOutcome.GONE), both[1])))
    assert committed(claims) == Decimal("1.25")


def test_the_limit_may_be_reached_and_not_passed(claims: ClaimStore) -> None:
    claims.create(placed("one", "2.50"), budget_limit=LIMIT)
    claims.create(placed("two", "2.50"), budget_limit=LIMIT)
    with pytest.raises(BudgetExhaustedError):
        claims.create(placed("three", "0.01"), budget_limit=LIMIT)
    assert claims.get(placed("three").claim_id) is None
    assert committed(claims) == LIMIT


def test_one_claim_alone_may_be_too_dear(claims: ClaimStore) -> None:
    with pytest.raises(BudgetExhaustedError):
        claims.create(placed("one", "5.01"), budget_limit=LIMIT)
    assert claims.budget(CLUSTER, POOL).version == 0
    claims.create(placed("two", "5.00"), budget_limit=LIMIT)


def test_a_save_over_the_limit_changes_nothing(claims: ClaimStore) -> None:
    claims.create(placed("one", "4.00"))
    waiting = claims.create(pending("two"))
    with pytest.raises(BudgetExhaustedError):
        claims.save(waiting, placed("two", "1.01"), budget_limit=LIMIT)
    assert claims.get(waiting.claim_id) == waiting
    assert committed(claims) == 4


def test_freeing_is_never_refused(claims: ClaimStore) -> None:
    claim = claims.create(placed("one", "4.00"))
    freed = claim.model_copy(update={"phase": Phase.PENDING, "candidate": None})
    claims.save(claim, freed, budget_limit=Decimal("0.01"))
    assert committed(claims) == 0


def test_without_a_limit_everything_fits(claims: ClaimStore) -> None:
    claims.create(placed("one", "4000"))
    assert committed(claims) == 4000


def test_a_conflict_is_told_before_the_budget(claims: ClaimStore) -> None:
    read = claims.create(pending())
    claims.save(read, placed(reserve="5.00"), budget_limit=LIMIT)
    with pytest.raises(ConflictError):
        claims.save(read, placed(reserve="1.00"), budget_limit=LIMIT)
    assert committed(claims) == LIMIT


def test_counters_are_apart_by_cluster_and_node_pool(claims: ClaimStore) -> None:
    claims.create(placed("one", "1"), budget_limit=Decimal(1))
    claims.create(placed("two", "1", node_pool="others"), budget_limit=Decimal(1))
    claims.create(placed("three", "1", cluster="elsewhere"), budget_limit=Decimal(1))
    assert committed(claims) == committed(claims, "others") == 1
    assert claims.budget("elsewhere", POOL).committed_per_hour == 1


def test_a_claim_that_changes_its_node_pool_moves_its_share(claims: ClaimStore) -> None:
    claim = claims.create(placed(reserve="2"))
    claims.save(claim, placed(reserve="3", node_pool="others"), budget_limit=Decimal(3))
    assert committed(claims) == 0
    assert committed(claims, "others") == 3
    crowded = claims.create(placed("two", "1"))
    with pytest.raises(BudgetExhaustedError):
        claims.save(crowded, placed("two", "1", node_pool="others"), budget_limit=Decimal(3))
    assert committed(claims) == 1
    assert committed(claims, "others") == 3


def test_amounts_add_up_exactly(claims: ClaimStore) -> None:
    made = [claims.create(placed(f"pod-{n}", "0.1")) for n in range(10)]
    assert committed(claims) == 1
    for claim in made:
        claims.save(claim, terminated(claim))
    assert committed(claims) == 0


def test_a_correction_holds_only_while_nobody_moved(claims: ClaimStore) -> None:
    assert claims.correct_budget(claims.budget(CLUSTER, POOL), Decimal("1.5"))
    read = claims.budget(CLUSTER, POOL)
    assert (read.committed_per_hour, read.version) == (Decimal("1.5"), 1)
    claims.create(placed(reserve="1"))
    assert not claims.correct_budget(read, Decimal(9))
    assert committed(claims) == Decimal("2.5")
    assert claims.correct_budget(claims.budget(CLUSTER, POOL), Decimal(1))
    assert committed(claims) == 1
    assert not claims.correct_budget(Budget(cluster=CLUSTER, node_pool=POOL), Decimal(9))


def test_a_terminated_claim_that_is_written_again_changes_no_counter(claims: ClaimStore) -> None:
    claim = claims.create(provisioned())
    ended = claims.save(claim, terminated(claim))
    claims.save(ended, ended.model_copy(update={"message": "noted"}))
    assert committed(claims) == 0
