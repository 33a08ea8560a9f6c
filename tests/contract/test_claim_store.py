"""What every claims ledger does: conditional moves and the sparse indexes."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from nebula.domain.claim import AttemptOutcome, Claim, Observation, Phase, TerminationReason
from nebula.lifecycle.transitions import reopened
from nebula.stores.claims import ClaimStore, ConflictError, DueClaim

from tests.support.claims import CLUSTER, NOW, SECOND, attempt, pending, placed, provisioned, terminated


def full() -> Claim:
    """A claim with every field set."""
    refused = attempt(1, outcome=AttemptOutcome.REFUSED, failures=("sim-h100: no capacity",), detail="none left")
    running = attempt(2, outcome=AttemptOutcome.CREATED, instance_id="i-9", absent_since=NOW, delete_accepted_at=NOW)
    return placed(
        phase=Phase.TERMINATING,
        pod_created_at=NOW - SECOND,
        attempts=(refused, running),
        pod_fields_hash="f" * 64,
        credential_key="runpod/acct/abc/1",
        next_action_at=NOW,
        reason="Preempted",
        message="taken back",
        exclusions=("simulated/H100:8/Spot/a",),
        rejections=3,
        unknown_outcomes=1,
        observation=Observation(
            cost_per_hour=Decimal("2.2"), exit_code=137, running_since=NOW, unready_since=NOW, message="x"
        ),
        pod_absent_since=NOW,
        pull_secrets_version="v",
        refused_pulls=("abc", "def"),
        released_at=NOW,
        termination_reason=TerminationReason.PREEMPTED,
        decision=("aws: unavailable",),
    )


@pytest.mark.parametrize("claim", [pending(), placed(), provisioned(), full(), terminated(full())])
def test_what_is_written_is_read_back(claims: ClaimStore, claim: Claim) -> None:
    assert claims.create(claim) == claim
    assert claims.get(claim.claim_id) == claim


def test_no_row_is_none(claims: ClaimStore) -> None:
    assert claims.get("0" * 32) is None


def test_a_second_create_conflicts_and_shows_what_stands(claims: ClaimStore) -> None:
    first = claims.create(placed())
    with pytest.raises(ConflictError) as conflict:
        claims.create(pending())
    assert conflict.value.current == first
    assert claims.budget(CLUSTER, "gpus").committed_per_hour == Decimal("2.50")


def test_a_save_raises_the_version(claims: ClaimStore) -> None:
    first = claims.create(pending())
    second = claims.save(first, first.model_copy(update={"reason": "Deferred"}))
    assert (second.version, second.reason) == (2, "Deferred")
    assert claims.get(first.claim_id) == second


@pytest.mark.parametrize("stale", [{"version": 7}, {"phase": Phase.RELEASED}])
def test_a_save_on_a_moved_claim_conflicts(claims: ClaimStore, stale: dict[str, object]) -> None:
    first = claims.create(pending())
    with pytest.raises(ConflictError) as conflict:
        claims.save(first.model_copy(update=stale), placed())
    assert conflict.value.current == first
    assert claims.get(first.claim_id) == first
    assert claims.budget(CLUSTER, "gpus").committed_per_hour == 0


def test_of_two_saves_from_one_read_one_wins(claims: ClaimStore) -> None:
    read = claims.create(pending())
    winner = claims.save(read, placed(reserve="1"))
    with pytest.raises(ConflictError) as conflict:
        claims.save(read, placed(reserve="2"))
    assert conflict.value.current == winner
    assert claims.budget(CLUSTER, "gpus").committed_per_hour == 1


def test_a_save_without_a_row_conflicts_with_nothing_there(claims: ClaimStore) -> None:
    with pytest.raises(ConflictError) as conflict:
        claims.save(pending(), placed())
    assert conflict.value.current is None
    assert claims.get(pending().claim_id) is None


def test_a_claim_never_replaces_another(claims: ClaimStore) -> None:
    first = claims.create(pending("one"))
    with pytest.raises(ValueError, match="does not replace"):
        claims.save(first, pending("two"))


def test_live_lists_one_cluster_until_terminated(claims: ClaimStore) -> None:
    ours = claims.create(provisioned("ours"))
    claims.create(pending("theirs", cluster="other"))
    assert list(claims.live(CLUSTER)) == [ours]
    assert (claims.any_live(CLUSTER), claims.any_live("other"), claims.any_live("none")) == (True, True, False)
    claims.save(ours, terminated(ours))
    assert list(claims.live(CLUSTER)) == []
    assert not claims.any_live(CLUSTER)


def test_live_pages_to_the_end(claims: ClaimStore) -> None:
    padding = tuple(f"{n}: " + "reason " * 100 for n in range(100))
    made = {claims.create(pending(f"pod-{n}", decision=padding)).claim_id for n in range(20)}
    assert {claim.claim_id for claim in claims.live(CLUSTER)} == made


def test_due_gives_the_oldest_first_up_to_the_limit(claims: ClaimStore) -> None:
    for age in (3, 1, 5, 2):
        claims.create(placed(f"pod-{age}", next_action_at=NOW - age * SECOND, reason=f"{age}"))
    claims.create(placed("later", next_action_at=NOW + timedelta(microseconds=1)))
    claims.create(pending("never"))
    assert [due.reason for due in claims.due(NOW)] == ["5", "3", "2", "1"]
    assert [due.reason for due in claims.due(NOW, limit=2)] == ["5", "3"]
    assert claims.due(NOW - 10 * SECOND) == []


def test_due_tells_enough_to_announce(claims: ClaimStore) -> None:
    claim = claims.create(placed(next_action_at=NOW, reason="Retry"))
    waiting = claims.create(pending("two", next_action_at=NOW))
    found = {due.claim_id: due for due in claims.due(NOW)}
    assert found[claim.claim_id] == DueClaim(
        claim_id=claim.claim_id,
        phase=Phase.PLACED,
        version=1,
        next_action_at=NOW,
        cluster=CLUSTER,
        provider="simulated",
        reason="Retry",
    )
    assert found[waiting.claim_id].provider == ""


def test_a_terminated_claim_owes_nothing(claims: ClaimStore) -> None:
    claims.create(terminated(provisioned()).model_copy(update={"next_action_at": NOW}))
    assert claims.due(NOW) == []


def test_due_comes_at_its_very_microsecond(claims: ClaimStore) -> None:
    whole = NOW.replace(microsecond=0)
    claims.create(placed("whole", next_action_at=whole))
    claims.create(placed("part", next_action_at=whole + timedelta(microseconds=1)))
    assert len(claims.due(whole)) == 1
    assert len(claims.due(whole + timedelta(microseconds=1))) == 2


def test_touch_moves_the_time_and_not_the_version(claims: ClaimStore) -> None:
    claim = claims.create(placed(next_action_at=NOW))
    (due,) = claims.due(NOW)
    assert claims.touch(due, NOW + 60 * SECOND)
    assert claims.due(NOW) == []
    touched = claims.get(claim.claim_id)
    assert touched == claim.model_copy(update={"next_action_at": NOW + 60 * SECOND})
    assert claims.save(claim, claim.model_copy(update={"phase": Phase.PENDING, "candidate": None})).version == 2


def test_only_one_of_two_touches_announces(claims: ClaimStore) -> None:
    claims.create(placed(next_action_at=NOW))
    (due,) = claims.due(NOW)
    assert [claims.touch(due, NOW + 60 * SECOND), claims.touch(due, NOW + 61 * SECOND)] == [True, False]
    assert [d.next_action_at for d in claims.due(NOW + 60 * SECOND)] == [NOW + 60 * SECOND]


def test_touch_leaves_a_claim_that_moved(claims: ClaimStore) -> None:
    claim = claims.create(placed(next_action_at=NOW))
    (due,) = claims.due(NOW)
    moved = claims.save(claim, provisioned(next_action_at=NOW))
    assert not claims.touch(due, NOW + SECOND)
    assert claims.get(claim.claim_id) == moved
    assert not claims.touch(due.model_copy(update={"claim_id": "0" * 32}), NOW)
    assert claims.get("0" * 32) is None


def test_an_instance_leads_to_its_claim_while_it_may_be_billed(claims: ClaimStore) -> None:
    claim = claims.create(provisioned(instance_id="i-7"))
    assert claims.find_by_instance("i-7") == claim
    assert claims.find_by_instance("i-8") is None
    second = claim.model_copy(
        update={"attempts": (attempt(1, outcome=AttemptOutcome.GONE, instance_id="i-7"), attempt(2, instance_id="i-8"))}
    )
    written = claims.save(claim, second)
    assert claims.find_by_instance("i-7") is None
    assert claims.find_by_instance("i-8") == written


def test_a_credential_leads_to_the_live_claims_that_carry_it(claims: ClaimStore) -> None:
    key = "runpod/acct/abc/1"
    one = claims.create(provisioned("one", "i-1", credential_key=key))
    two = claims.create(provisioned("two", "i-2", credential_key=key))
    claims.create(provisioned("three", "i-3", credential_key="runpod/acct/abc/2"))
    assert {c.claim_id for c in claims.find_by_credential(key)} == {one.claim_id, two.claim_id}
    ended = claims.save(one, terminated(one))
    assert claims.find_by_credential(key) == [two]
    assert ended.credential_key == key
    assert claims.get(one.claim_id) == ended


def test_more_claims_than_one_batch_carry_a_credential(claims: ClaimStore) -> None:
    key = "runpod/acct/abc/1"
    made = {claims.create(pending(f"pod-{n}", credential_key=key)).claim_id for n in range(130)}
    assert {c.claim_id for c in claims.find_by_credential(key)} == made


def test_a_claim_that_begins_anew_is_found_like_any_other(claims: ClaimStore) -> None:
    over = claims.create(terminated(pending(termination_reason=TerminationReason.POD_DELETED)))
    assert list(claims.live(CLUSTER)) == []
    begun = claims.save(over, reopened(over, NOW))
    assert list(claims.live(CLUSTER)) == [begun]
    assert [due.claim_id for due in claims.due(NOW)] == [begun.claim_id]
