"""The sweep's recount: upward at once, downward when two counts agree, never over a counter that moved."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

import pytest
from nebula.domain.claim import Claim
from nebula.domain.unreadable import UnreadableClaim
from nebula.placement.budget import committed, instances, that_fit
from nebula.stores.claims import Budget
from nebula.workflows.recount import AGREE_WITHIN, TURN, recount_budgets

from tests.support.claims import NOW, POOL, SECOND, attempt, pending, placed
from tests.support.world import World, pool_object


def placed_world() -> World:
    world = World(pool=pool_object(budgetPerHour="10"))
    world.create_pod()
    world.pump()
    assert world.committed() == Decimal("2.00")
    return world


def tamper(world: World, amount: str) -> Budget:
    assert world.claims.correct_budget(world.claims.budget("test", "pool"), Decimal(amount))
    return world.claims.budget("test", "pool")


def recount(world: World) -> int:
    return recount_budgets(world.services("status_polling"), "test", ["pool"])


def test_a_true_counter_is_left_alone() -> None:
    world = placed_world()
    before = world.claims.writes
    assert recount(world) == 0
    assert world.claims.writes == before


def test_upward_at_once_for_money_that_is_spent() -> None:
    world = placed_world()
    tamper(world, "0")
    assert recount(world) == 1
    assert world.committed() == Decimal("2.00")
    assert world.telemetry.total("BudgetCorrections") == 1


def test_downward_only_when_two_counts_agree() -> None:
    world = placed_world()
    tamper(world, "7")
    assert recount(world) == 0
    assert world.committed() == Decimal(7)
    assert recount(world) == 1
    assert world.committed() == Decimal("2.00")
    tamper(world, "7")
    assert recount(world) == 0, "an old agreement does not count for a new difference"


@pytest.mark.parametrize(("apart", "corrected"), [(AGREE_WITHIN, 1), (AGREE_WITHIN + SECOND, 0)])
def test_two_counts_that_are_far_apart_do_not_agree(
    apart: timedelta, corrected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = placed_world()
    with monkeypatch.context() as lagging:
        lagging.setattr(world.claims, "live", lambda *_: iter(()))
        assert recount(world) == 0
        world.clock.advance(apart)
        assert recount(world) == corrected, "the index lagged again, by as much as then"
    assert world.committed() == (0 if corrected else Decimal("2.00"))


def test_counts_agree_across_the_minutes_that_the_sweep_gives_to_other_clusters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = placed_world()
    names = [f"slow-{number}" for number in range(9)] + ["test"]
    monkeypatch.setattr(world.clusters, "names", names.copy)
    tamper(world, "7")
    assert recount(world) == 0
    world.clock.advance(TURN * len(names) + SECOND)
    assert recount(world) == 1
    assert world.committed() == Decimal("2.00")


def test_a_difference_that_lasts_is_found_again_after_it_was_forgotten() -> None:
    world = placed_world()
    tamper(world, "7")
    assert recount(world) == 0
    world.clock.advance(timedelta(hours=20))
    assert [recount(world), recount(world)] == [0, 1]


def test_two_different_differences_do_not_agree() -> None:
    world = placed_world()
    tamper(world, "7")
    recount(world)
    tamper(world, "6")
    assert recount(world) == 0
    assert world.committed() == Decimal(6)


def test_a_counter_that_moved_while_counting_is_not_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    world = placed_world()
    tamper(world, "0")
    live = world.claims.live

    def moving(cluster: str, unreadable: list[UnreadableClaim]) -> Iterator[Claim]:
        counter = world.claims.budget("test", "pool")
        world.claims.correct_budget(counter, counter.committed_per_hour)
        return live(cluster, unreadable)

    monkeypatch.setattr(world.claims, "live", moving)
    assert recount(world) == 0
    assert world.committed() == Decimal(0)


def test_a_counter_without_claims_is_counted_too() -> None:
    world = World(pool=pool_object(budgetPerHour="10"))
    tamper(world, "3")
    assert [recount(world), recount(world)] == [0, 1]
    assert world.committed() == Decimal(0)


def test_the_sweep_recounts() -> None:
    world = placed_world()
    tamper(world, "9")
    world.run(2)
    assert world.committed() == Decimal("2.00")


@pytest.mark.parametrize(
    ("row", "left"),
    [
        (UnreadableClaim(claim_id="a", node_pool="pool", committed_per_hour=Decimal(4)), "6.00"),
        (UnreadableClaim(claim_id="a", node_pool="another", committed_per_hour=None), "2.00"),
        (UnreadableClaim(claim_id="a", node_pool="pool", committed_per_hour=None), "7"),
        (UnreadableClaim(claim_id="a", committed_per_hour=Decimal(4)), "7"),
        (UnreadableClaim(claim_id="a"), "7"),
    ],
    ids=["what it holds counts", "of another pool", "unknown", "of an unknown pool", "all unknown"],
)
def test_what_a_claim_that_cannot_be_read_may_hold_is_not_freed(
    row: UnreadableClaim, left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = placed_world()
    tamper(world, "7")
    live = world.claims.live

    def with_row(cluster: str, unreadable: list[UnreadableClaim]) -> Iterator[Claim]:
        unreadable.append(row)
        return live(cluster, unreadable)

    monkeypatch.setattr(world.claims, "live", with_row)
    recount(world)
    recount(world)
    assert world.committed() == Decimal(left)


def test_money_that_is_spent_counts_beside_a_claim_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    world = placed_world()
    tamper(world, "0")
    live = world.claims.live

    def with_row(cluster: str, unreadable: list[UnreadableClaim]) -> Iterator[Claim]:
        unreadable.append(UnreadableClaim(claim_id="a"))
        return live(cluster, unreadable)

    monkeypatch.setattr(world.claims, "live", with_row)
    assert recount(world) == 1
    assert world.committed() == Decimal("2.00")


def test_committed_counts_each_pool_by_itself() -> None:
    one = placed("a", "1.5")
    two = pending("b", attempts=(attempt(1, "2"),), node_pool="other")
    assert committed([one, two, pending("c")]) == {POOL: Decimal("1.5"), "other": Decimal(2)}


def test_instances_count_what_has_an_id() -> None:
    made = attempt(1, "2").model_copy(update={"instance_id": "i-1"})
    assert instances([pending("a", attempts=(made,)), pending("b", attempts=(attempt(1, "2"),))]) == {
        POOL: {made.candidate.provider: 1}
    }


def test_those_that_fit_are_the_oldest_and_small_ones_may_pass() -> None:
    claims = [
        pending(str(age), wanted_per_hour=Decimal(wanted), created_at=NOW - age * SECOND)
        for age, wanted in ((1, "2"), (3, "3"), (2, "4"))
    ]
    assert [c.wanted_per_hour for c in that_fit(claims, Decimal(5))] == [Decimal(3), Decimal(2)]
    assert len(that_fit(claims, None)) == 3
    assert that_fit([pending("d")], Decimal(100)) == []
