"""The claim's state machine: only the moves that there are, and none out of Terminated."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from nebula.domain.claim import AttemptOutcome, Claim, Phase, TerminationReason
from nebula.domain.instance import Instance, InstanceState
from nebula.lifecycle import transitions

from tests.support.claims import NOW, candidate, placed

LEASE = timedelta(seconds=120)
CANDIDATE = candidate(reserve="3")


def _claim(phase: Phase) -> Claim:
    return placed(reserve="3", phase=phase)


def _leased() -> Claim:
    return transitions.take_lease(_claim(Phase.PLACED), NOW, LEASE, pod_fields_hash="h", credential_key=None)


def test_terminated_is_sticky_and_every_phase_but_it_can_end() -> None:
    assert not transitions.MOVES[Phase.TERMINATED]
    for phase in set(Phase) - {Phase.TERMINATED, Phase.TERMINATING}:
        assert Phase.TERMINATING in transitions.MOVES[phase]
    for phase in Phase:
        with pytest.raises(transitions.IllegalMoveError):
            transitions.move(_claim(Phase.TERMINATED), phase, NOW)


def test_a_lease_records_the_attempt_and_is_due_at_its_end() -> None:
    leased = _leased()
    assert leased.phase is Phase.PROVISIONING
    assert leased.attempts[0].number == 1
    assert leased.attempts[0].outcome is AttemptOutcome.UNKNOWN
    assert leased.next_action_at == leased.attempts[0].lease_until == NOW + LEASE
    assert leased.pod_fields_hash == "h"


def test_a_new_attempt_waits_until_the_earlier_one_is_confirmed_gone() -> None:
    claim = _leased().model_copy(update={"phase": Phase.PLACED})
    with pytest.raises(transitions.IllegalMoveError):
        transitions.take_lease(claim, NOW, LEASE, pod_fields_hash="h", credential_key=None)


def test_what_is_held_of_the_budget_is_the_dearest_that_may_be_billed() -> None:
    claim = _claim(Phase.PLACED)
    assert claim.committed_per_hour == Decimal(3)
    leased = transitions.take_lease(claim, NOW, LEASE, pod_fields_hash="h", credential_key=None)
    assert leased.committed_per_hour == Decimal(3)
    refused = transitions.back_to_pending(
        leased, NOW, reason="NoCapacity", message="", next_action_at=NOW, outcome=AttemptOutcome.REFUSED
    )
    assert refused.committed_per_hour == 0
    unknown = transitions.outcome_unknown(leased, NOW, message="timeout")
    assert unknown.committed_per_hour == Decimal(3)


def test_an_unknown_outcome_changes_nothing_but_the_count() -> None:
    leased = _leased()
    unknown = transitions.outcome_unknown(leased, NOW, message="timeout")
    assert unknown.unknown_outcomes == 1
    assert unknown.next_action_at == leased.next_action_at
    assert unknown.attempts == leased.attempts


@pytest.mark.parametrize("keep_lease", [True, False])
def test_a_created_instance_is_due_for_release_or_at_its_reserve_deadline(keep_lease: bool) -> None:
    leased = _leased()
    created = transitions.created(leased, Instance(id="i"), NOW, keep_lease=keep_lease)
    assert created.instance_id == "i"
    assert created.attempts[-1].outcome is AttemptOutcome.CREATED
    assert created.observation.state is InstanceState.PENDING
    expected = leased.attempts[0].lease_until if keep_lease else NOW + created.failover.reserve_deadline
    assert created.next_action_at == expected


@pytest.mark.parametrize("why", sorted(set(TerminationReason) - transitions.GATED_TERMINATIONS))
def test_a_gated_claim_does_not_end_for_its_instance(why: TerminationReason) -> None:
    created = transitions.created(_leased(), Instance(id="i"), NOW, keep_lease=True)
    with pytest.raises(transitions.IllegalMoveError):
        transitions.terminating(created, NOW, why=why, message="")
    released = transitions.released(transitions.releasing(created, NOW, again_at=NOW), NOW)
    assert transitions.terminating(released, NOW, why=why, message="").termination_reason is why


def test_a_claim_is_terminated_only_when_nothing_is_billed() -> None:
    created = transitions.created(_leased(), Instance(id="i"), NOW, keep_lease=True)
    ending = transitions.terminating(created, NOW, why=TerminationReason.POD_DELETED, message="")
    with pytest.raises(transitions.IllegalMoveError):
        transitions.terminated(ending, NOW)
    gone = ending.model_copy(update={"attempts": transitions.with_attempt(ending, outcome=AttemptOutcome.GONE)})
    ended = transitions.terminated(gone, NOW)
    assert not ended.live
    assert ended.next_action_at is None
    assert ended.committed_per_hour == 0


def test_rejections_count_the_chain_and_exclusions_are_kept_once() -> None:
    claim = _leased()
    for _ in range(2):
        claim = transitions.back_to_pending(
            claim.model_copy(update={"phase": Phase.PROVISIONING, "candidate": CANDIDATE}),
            NOW,
            reason="RequestRefused",
            message="no",
            next_action_at=NOW,
            outcome=AttemptOutcome.REFUSED,
            exclude=True,
            rejected=True,
        )
    assert claim.rejections == 2
    assert claim.exclusions == (CANDIDATE.key,)
    assert claim.candidate is None
