"""A Pod that opts out behind the gate is given up; one that opts in again is placed again."""

from __future__ import annotations

from datetime import timedelta

import pytest
from nebula.domain.claim import AttemptOutcome, Claim, Phase, TerminationReason
from nebula.events.details import DetailType
from nebula.kubernetes.names import LABEL_ENABLED
from nebula.lifecycle.transitions import IllegalMoveError, reopenable, reopened
from nebula.providers.simulated import Behaviour
from nebula.workflows.abandon import abandon

from tests.support.claims import NOW, attempt, pending
from tests.support.mischief import claims, label
from tests.support.simulated import make_slowly
from tests.support.world import World, running

OVER = pending(phase=Phase.TERMINATED, termination_reason=TerminationReason.POD_DELETED)


def _opted_out() -> tuple[World, Claim]:
    """A gated Pod without a place whose opt-in label was taken away, and the claim's end."""
    world = World()
    world.simulated.market.limit(0)
    world.create_pod()
    world.pump()
    claim = claims(world)[0]
    label(world, "train", LABEL_ENABLED, None)
    world.run(2)
    world.simulated.market.restock()
    ended = world.claims.get(claim.claim_id)
    assert ended is not None
    assert ended.phase is Phase.TERMINATED
    return world, ended


def test_a_label_put_back_is_noticed_without_any_event() -> None:
    world, _ = _opted_out()
    label(world, "train", LABEL_ENABLED, "true")
    world.run(2)
    assert running(world.pod())
    assert len(world.billed()) == 1


def test_a_label_put_back_is_noticed_at_once_where_the_forwarder_tells() -> None:
    world, _ = _opted_out()
    label(world, "train", LABEL_ENABLED, "true")
    world.announce(DetailType.POD_GATED, world.pod() or {})
    world.pump()
    assert claims(world)[0].phase is Phase.RELEASED


def test_without_the_label_nothing_is_placed() -> None:
    world, _ = _opted_out()
    world.announce(DetailType.POD_CHANGED, world.pod() or {})
    world.pump()
    world.run(3)
    assert claims(world) == []
    assert world.billed() == []


def test_an_instance_that_was_made_before_the_opt_out_is_given_back_and_another_one_made() -> None:
    world = World()
    make_slowly(world.simulated, boot=timedelta(hours=1))
    world.create_pod()
    world.pump()
    first = claims(world)[0]
    assert first.phase is Phase.PROVISIONED
    label(world, "train", LABEL_ENABLED, None)
    world.run(2)
    assert world.billed() == []
    world.simulated.behaviour = Behaviour()
    label(world, "train", LABEL_ENABLED, "true")
    world.run(3)
    again = claims(world)[0]
    assert running(world.pod())
    assert [a.number for a in again.attempts] == [1, 2]
    assert again.attempts[0].outcome is AttemptOutcome.GONE


def test_a_pod_put_back_while_its_claim_still_ends_waits_for_the_end() -> None:
    world = World()
    make_slowly(world.simulated, boot=timedelta(hours=1), termination=timedelta(minutes=2))
    world.create_pod()
    world.pump()
    label(world, "train", LABEL_ENABLED, None)
    world.minute()
    assert claims(world)[0].phase is Phase.TERMINATING
    label(world, "train", LABEL_ENABLED, "true")
    world.simulated.behaviour = Behaviour()
    world.run(5)
    assert running(world.pod())
    assert len(world.billed()) == 1


def test_an_abandoned_pod_is_not_placed_again_by_itself() -> None:
    world = World()
    world.simulated.market.limit(0)
    world.create_pod()
    world.pump()
    abandon(world.services("operator"), claims(world)[0].claim_id, "enough")
    world.simulated.market.restock()
    world.run(5)
    assert claims(world) == []
    assert world.billed() == []


@pytest.mark.parametrize(
    "claim",
    [
        pending(),
        OVER.model_copy(update={"phase": Phase.TERMINATING}),
        OVER.model_copy(update={"released_at": NOW}),
        *(
            OVER.model_copy(update={"termination_reason": why})
            for why in set(TerminationReason) - {TerminationReason.POD_DELETED}
        ),
    ],
)
def test_nothing_else_begins_anew(claim: Claim) -> None:
    assert not reopenable(claim)
    with pytest.raises(IllegalMoveError):
        reopened(claim, NOW)


def test_what_begins_anew_keeps_its_attempts_and_forgets_its_refusals() -> None:
    gone = attempt(outcome=AttemptOutcome.GONE)
    former = {"attempts": (gone,), "exclusions": ("x",), "rejections": 3, "credential_key": "runpod/acct/abc/1"}
    begun = reopened(OVER.model_copy(update=former), NOW)
    assert (begun.phase, begun.attempts, begun.exclusions, begun.rejections) == (Phase.PENDING, (gone,), (), 0)
    assert begun.next_action_at == NOW
    assert begun.termination_reason is None
    assert begun.credential_key is None
    assert begun.live
