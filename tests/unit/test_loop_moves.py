"""What one look makes of each claim: the table of its moves, as far as the status loop writes it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from nebula.domain.claim import AttemptOutcome, Claim, Observation, Phase, TerminationReason
from nebula.domain.instance import Instance, InstanceListing, InstanceState, Mark
from nebula.lifecycle.assessment import Assessment, assess
from nebula.lifecycle.observation import ABSENCE_GAP, BELIEVED_AFTER
from nebula.providers.errors import NoCapacityError
from nebula.providers.simulated import DEFAULT_CAPABILITIES

from tests.support.claims import NOW, SECOND, attempt, pending, placed, provisioned
from tests.support.simulated import QUEUES

HELD = (Phase.PROVISIONED, Phase.RELEASING, Phase.RELEASED)
GATED = (Phase.PROVISIONED, Phase.RELEASING)
LATER = NOW + timedelta(minutes=10)
RAN = Observation(state=InstanceState.RUNNING, running_since=NOW)


def _claim(phase: Phase, **changes: Any) -> Claim:
    made = attempt(
        outcome=AttemptOutcome.CREATED, instance_id="i-1", scope="", **changes.pop("attempt", {"lease_until": NOW})
    )
    why = TerminationReason.POD_DELETED if phase is Phase.TERMINATING else None
    fields = {"phase": phase, "attempts": (made,), "phase_since": NOW, "termination_reason": why, **changes}
    return provisioned(**{"observation": RAN, "released_at": NOW if phase is Phase.RELEASED else None, **fields})


def _look(claim: Claim, *instances: Instance, at: Any = LATER, complete: bool = True, **more: Any) -> Assessment:
    listing = InstanceListing(
        began_at=at,
        instances=instances,
        complete_scopes=frozenset({""}) if complete else frozenset(),
        failed_scopes={} if complete else {"": "cut"},
    )
    capabilities = more.pop("capabilities", DEFAULT_CAPABILITIES)
    return assess(claim, listing, capabilities, "here", at, **more)


def _seen(claim: Claim, state: InstanceState = InstanceState.RUNNING, **more: Any) -> Instance:
    return Instance(id="i-1", mark=Mark(installation="here", claim_id=claim.claim_id, attempt=1), state=state, **more)


@dataclass(frozen=True)
class Row:
    """An instance's state under a claim's phase, and what becomes of the claim."""

    phase: Phase
    state: InstanceState
    after: Phase
    why: str = ""
    exit_code: int | None = None
    preempted: bool = False


ROWS = [
    *(Row(phase, InstanceState.RUNNING, phase) for phase in HELD),
    *(Row(phase, InstanceState.PENDING, phase) for phase in HELD),
    *(Row(phase, InstanceState.EXITED, Phase.WITHDRAWING, "InstanceFailed", exit_code=0) for phase in GATED),
    *(Row(phase, InstanceState.FAILED, Phase.WITHDRAWING, "InstanceFailed") for phase in GATED),
    *(Row(phase, InstanceState.TERMINATED, Phase.WITHDRAWING, "InstanceFailed") for phase in GATED),
    *(Row(phase, InstanceState.TERMINATED, Phase.WITHDRAWING, "Preempted", preempted=True) for phase in GATED),
    Row(Phase.RELEASED, InstanceState.EXITED, Phase.TERMINATING, "PodFinished", exit_code=0),
    Row(Phase.RELEASED, InstanceState.EXITED, Phase.TERMINATING, "PodFinished", exit_code=137),
    Row(Phase.RELEASED, InstanceState.EXITED, Phase.TERMINATING, "InstanceFailed"),
    Row(Phase.RELEASED, InstanceState.FAILED, Phase.TERMINATING, "InstanceFailed"),
    Row(Phase.RELEASED, InstanceState.TERMINATED, Phase.TERMINATING, "InstanceLost"),
    Row(Phase.RELEASED, InstanceState.TERMINATED, Phase.TERMINATING, "Preempted", preempted=True),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r.phase}-{r.state}-{r.exit_code}-{'spot' * r.preempted}")
def test_the_table(row: Row) -> None:
    claim = _claim(row.phase)
    seen = _seen(claim, row.state, exit_code=row.exit_code, preempted=row.preempted)
    after = _look(claim, seen, at=NOW + SECOND).claim
    assert after.phase is row.after
    if row.after is not row.phase:
        assert after.reason == row.why


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.PLACED, Phase.PROVISIONING, Phase.TERMINATED])
def test_a_phase_that_is_not_the_loop_s_is_left_alone(phase: Phase) -> None:
    claim = placed(phase=phase) if phase is not Phase.PENDING else pending()
    assert _look(claim).claim is claim


@pytest.mark.parametrize("phase", HELD)
def test_what_did_not_change_is_the_very_same_claim(phase: Phase) -> None:
    claim = _claim(phase)
    settled = _look(claim, _seen(claim), at=NOW + SECOND).claim
    assert _look(settled, _seen(claim), at=NOW + 2 * SECOND).claim is settled


def test_a_claim_that_has_its_instance_running_is_announced_each_time() -> None:
    claim = _claim(Phase.PROVISIONED)
    assert _look(claim, _seen(claim), at=NOW + SECOND).ready
    assert not _look(_claim(Phase.RELEASING), _seen(claim), at=NOW + SECOND).ready


@pytest.mark.parametrize(
    ("changes", "capabilities", "reason"),
    [
        ({"observation": Observation()}, QUEUES, "ReserveDeadline"),
        ({"attempt": {"lease_until": NOW}}, DEFAULT_CAPABILITIES, "ReleaseDeadline"),
        ({"observation": RAN}, QUEUES, "ReleaseDeadline"),
    ],
    ids=["queued too long", "not released in time", "ran and was not released in time"],
)
def test_a_gated_claim_past_a_deadline_withdraws(changes: dict[str, Any], capabilities: Any, reason: str) -> None:
    claim = _claim(Phase.PROVISIONED, **changes)
    state = claim.observation.state
    in_time = _look(claim, _seen(claim, state), at=NOW + timedelta(minutes=5), capabilities=capabilities)
    assert in_time.claim.phase is Phase.PROVISIONED
    late = _look(claim, _seen(claim, state), at=NOW + timedelta(minutes=5, seconds=1), capabilities=capabilities)
    assert (late.claim.phase, late.claim.reason) == (Phase.WITHDRAWING, reason)
    assert isinstance(late.failure, NoCapacityError) is (reason == "ReserveDeadline")


def test_a_released_claim_past_its_start_deadline_ends_and_blocks_the_place() -> None:
    claim = _claim(Phase.RELEASED, observation=Observation())
    seen = _seen(claim, InstanceState.PENDING)
    assert _look(claim, seen, at=NOW + claim.failover.start_deadline).claim.phase is Phase.RELEASED
    late = _look(claim, seen, at=NOW + claim.failover.start_deadline + SECOND)
    assert late.claim.termination_reason is TerminationReason.START_DEADLINE
    assert isinstance(late.failure, NoCapacityError)


def test_a_preemption_blocks_the_place_before_the_claim_moves() -> None:
    claim = _claim(Phase.RELEASED)
    assert isinstance(_look(claim, _seen(claim, preempted=True)).failure, NoCapacityError)


@pytest.mark.parametrize("phase", HELD)
def test_an_end_is_sticky_whatever_is_reported_later(phase: Phase) -> None:
    claim = _claim(phase, observation=Observation(state=InstanceState.EXITED, exit_code=3, running_since=NOW))
    after = _look(claim, _seen(claim, InstanceState.RUNNING), at=NOW + SECOND).claim
    assert after.observation.exit_code == 3
    assert after.phase in (Phase.WITHDRAWING, Phase.TERMINATING)


def test_the_rate_that_was_billed_is_remembered_after_the_end() -> None:
    claim = _claim(Phase.RELEASED)
    running = _look(claim, _seen(claim, cost_per_hour="2.50"), at=NOW + SECOND).claim
    ended = _look(running, _seen(claim, InstanceState.EXITED, exit_code=0, cost_per_hour="0"), at=NOW + 2 * SECOND)
    assert str(ended.claim.observation.cost_per_hour) == "2.50"


@pytest.mark.parametrize("phase", HELD)
def test_a_loss_needs_two_complete_lists_apart_and_a_read(phase: Phase) -> None:
    claim = _claim(phase)
    once = _look(claim, at=LATER)
    assert (once.claim.phase, once.claim.attempts[-1].absent_since, once.confirm) == (phase, LATER, False)
    early = _look(once.claim, at=LATER + ABSENCE_GAP - SECOND)
    assert early.claim.phase is phase
    twice = _look(once.claim, at=LATER + ABSENCE_GAP)
    assert twice.confirm
    assert twice.claim.phase is (Phase.TERMINATING if phase is Phase.RELEASED else Phase.WITHDRAWING)
    assert twice.claim.reason == "InstanceLost"


@pytest.mark.parametrize("phase", HELD)
def test_an_incomplete_list_or_one_of_before_the_delay_loses_nothing(phase: Phase) -> None:
    claim = _claim(phase, attempt={"lease_until": NOW})
    slow = DEFAULT_CAPABILITIES.model_copy(update={"visibility_delay": timedelta(hours=1)})
    assert _look(claim, complete=False).claim is claim
    assert _look(claim, capabilities=slow).claim is claim


def test_a_sight_in_between_starts_the_proof_anew() -> None:
    claim = _claim(Phase.RELEASED)
    once = _look(claim).claim
    again = _look(once, _seen(claim), at=LATER + SECOND).claim
    assert again.attempts[-1].absent_since is None


def test_in_doubt_a_loss_takes_longer_and_is_read_at_both_ends() -> None:
    claim = _claim(Phase.RELEASED)
    once = _look(claim, gap=BELIEVED_AFTER)
    assert once.confirm
    assert _look(once.claim, at=LATER + ABSENCE_GAP, gap=BELIEVED_AFTER).claim is once.claim
    twice = _look(once.claim, at=LATER + BELIEVED_AFTER, gap=BELIEVED_AFTER)
    assert (twice.claim.phase, twice.confirm) == (Phase.TERMINATING, True)


@pytest.mark.parametrize("phase", [Phase.WITHDRAWING, Phase.TERMINATING])
@pytest.mark.parametrize("shown", [False, True], ids=["absent", "terminated"])
def test_after_an_accepted_delete_one_complete_list_is_enough(phase: Phase, shown: bool) -> None:
    claim = _claim(phase, attempt={"lease_until": NOW, "delete_accepted_at": NOW + SECOND})
    after = _look(claim, *([_seen(claim, InstanceState.TERMINATED)] if shown else [])).claim
    assert after.attempts[-1].outcome is AttemptOutcome.GONE
    assert after.phase is (Phase.PENDING if phase is Phase.WITHDRAWING else Phase.TERMINATING)


def test_a_list_that_began_before_the_delete_was_accepted_says_nothing() -> None:
    accepted = LATER + SECOND
    claim = _claim(Phase.TERMINATING, attempt={"lease_until": NOW, "delete_accepted_at": accepted})
    after = _look(claim).claim
    assert after.unconfirmed


@pytest.mark.parametrize("phase", [Phase.WITHDRAWING, Phase.TERMINATING])
def test_an_ending_instance_that_is_still_there_keeps_the_claim(phase: Phase) -> None:
    claim = _claim(phase, attempt={"lease_until": NOW, "delete_accepted_at": NOW})
    assert not _look(claim, _seen(claim)).finished


def test_an_attempt_that_made_nothing_is_proved_by_two_lists() -> None:
    unknown = attempt(lease_until=NOW, scope="")
    claim = provisioned(phase=Phase.TERMINATING, attempts=(unknown,), termination_reason=TerminationReason.POD_DELETED)
    once = _look(claim).claim
    assert once.unconfirmed
    proved = _look(once, at=LATER + ABSENCE_GAP)
    assert proved.claim.attempts[-1].outcome is AttemptOutcome.NEVER_MADE
    assert proved.finished


def test_an_ending_claim_learns_the_id_of_what_its_create_made() -> None:
    unknown = attempt(lease_until=NOW, scope="")
    claim = provisioned(phase=Phase.TERMINATING, attempts=(unknown,), termination_reason=TerminationReason.POD_DELETED)
    found = _look(claim, _seen(claim)).claim
    assert (found.attempts[-1].instance_id, found.next_action_at) == ("i-1", LATER)
