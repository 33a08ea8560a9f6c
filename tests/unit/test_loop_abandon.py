"""``abandon``: an operator's word ends a claim, deletes nothing, and leaves a trace (field report B4)."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta

import pytest
from nebula.domain.claim import AttemptOutcome, Claim, Phase, TerminationReason
from nebula.events.details import ClaimDetail, DetailType
from nebula.kubernetes.api import ClusterUnavailableError
from nebula.providers.errors import ProviderUnavailableError
from nebula.providers.simulated import Call
from nebula.stores.claims import ConflictError
from nebula.workflows.abandon import NotAbandonedError, abandon

from cli.__main__ import main
from tests.support.mischief import another_cluster, claims, running_pods, said
from tests.support.world import CLUSTER, World

WHY = "the provider's account is closed"


def _abandoned() -> tuple[World, Claim, str]:
    """A running Pod whose claim is given up; returns the claim as it was written and its instance."""
    world = World()
    running_pods(world, 1)
    claim = claims(world)[0]
    written = abandon(world.services("operator"), claim.claim_id, WHY)
    return world, written, str(claim.instance_id)


def _final(world: World, claim: Claim) -> Claim:
    found = world.claims.get(claim.claim_id)
    assert found is not None
    return found


def test_the_claim_ends_as_abandoned_and_holds_no_budget() -> None:
    world, claim, _ = _abandoned()
    assert (claim.phase, claim.termination_reason) == (Phase.TERMINATING, TerminationReason.ABANDONED)
    world.tick()
    assert _final(world, claim).phase is Phase.TERMINATED
    assert world.committed() == 0


def test_its_attempts_count_as_gone_on_the_operator_s_word_alone() -> None:
    _, claim, instance_id = _abandoned()
    assert [(a.outcome, a.instance_id) for a in claim.attempts] == [(AttemptOutcome.ABANDONED, instance_id)]
    assert WHY in claim.attempts[0].detail
    assert claim.unconfirmed == ()


def test_nothing_is_deleted_at_the_provider() -> None:
    world, _, instance_id = _abandoned()
    world.tick()
    assert world.billed() == [instance_id]
    assert world.simulated.script.counts[Call.TERMINATE] == 0


def test_the_pod_hears_that_its_instance_may_still_exist() -> None:
    world, _, _ = _abandoned()
    world.tick()
    status = (world.pod("train-0") or {})["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "Abandoned")
    assert "may still exist" in status["message"]


def test_it_is_audited_in_the_ledger_the_log_a_figure_and_an_event() -> None:
    world, claim, instance_id = _abandoned()
    assert WHY in claim.message
    line = said(world, "claim abandoned")[0]
    assert (line["claim_id"], line["was"]) == (claim.claim_id, "Released")
    assert line["unconfirmed"] == [f"simulated/{instance_id}"]
    assert world.telemetry.total("ClaimsAbandoned") == 1
    (event,) = world.publisher.of_type(DetailType.CLAIM_ABANDONED)
    assert isinstance(event.detail, ClaimDetail)
    assert (event.source, event.detail.claim_id, event.detail.reason) == (
        "nebula.operator",
        claim.claim_id,
        "Abandoned",
    )


def test_a_bus_that_refuses_does_not_undo_it() -> None:
    world = World()
    running_pods(world, 1)
    world.publisher.fail_next(10)
    claim = abandon(world.services("operator"), claims(world)[0].claim_id, WHY)
    assert _final(world, claim).termination_reason is TerminationReason.ABANDONED


def test_its_instance_that_shows_up_later_is_reported_as_an_orphan() -> None:
    world, claim, instance_id = _abandoned()
    world.minute(terminate=False)
    assert _final(world, claim).phase is Phase.TERMINATED
    for _ in range(3):
        world.minute(terminate=False)
    assert said(world, "orphans")[-1]["instances"] == [instance_id]
    assert world.billed() == [instance_id]


def test_its_instance_that_shows_up_later_is_ended_where_orphans_are() -> None:
    world, _, instance_id = _abandoned()
    world.run(3)
    assert said(world, "orphans")[-1]["terminated"] == [instance_id]
    assert world.billed() == []


def test_a_provider_that_never_answers_does_not_keep_it() -> None:
    world = World()
    running_pods(world, 1)
    world.simulated.script.fail(Call.LIST, ProviderUnavailableError("cut"), times=10_000)
    claim = abandon(world.services("operator"), claims(world)[0].claim_id, WHY)
    world.tick()
    assert _final(world, claim).phase is Phase.TERMINATED


def test_a_gated_pod_stays_gated_and_says_why() -> None:
    world = World()
    world.simulated.market.limit(0)
    world.create_pod()
    world.pump()
    abandon(world.services("operator"), claims(world)[0].claim_id, WHY)
    world.run(3)
    pod = world.pod() or {}
    assert pod["spec"]["schedulingGates"]
    shown = next(c for c in pod["status"]["conditions"] if c["type"].endswith("/Released"))
    assert shown["reason"] == "Abandoned"
    assert WHY in shown["message"]
    assert claims(world) == []


@pytest.mark.parametrize(
    ("spoil", "ends_at_once"),
    [
        (lambda world: world.clusters._apis.pop(CLUSTER), True),
        (another_cluster, True),
        (lambda world: setattr(world.api, "cluster_uid", _silent), False),
    ],
    ids=["not configured", "another cluster", "silent"],
)
def test_it_ends_at_once_only_where_no_pod_can_be_told(spoil: Callable[[World], None], ends_at_once: bool) -> None:
    world = World()
    running_pods(world, 1)
    claim = claims(world)[0]
    spoil(world)
    written = abandon(world.services("operator"), claim.claim_id, WHY)
    assert written.phase is (Phase.TERMINATED if ends_at_once else Phase.TERMINATING)


def _silent() -> str:
    raise ClusterUnavailableError("no answer")


def test_what_is_not_there_or_is_over_is_refused() -> None:
    world, claim, _ = _abandoned()
    world.tick()
    services = world.services("operator")
    with pytest.raises(NotAbandonedError, match="there is no claim"):
        abandon(services, "f" * 32, WHY)
    with pytest.raises(NotAbandonedError, match="is over: Abandoned"):
        abandon(services, claim.claim_id, WHY)


def test_a_claim_that_keeps_moving_is_tried_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    running_pods(world, 1)
    claim = claims(world)[0]
    tries = []

    def moved(*_: object, **__: object) -> Claim:
        tries.append(1)
        raise ConflictError("moved")

    monkeypatch.setattr(world.claims, "save", moved)
    with pytest.raises(NotAbandonedError, match="keeps moving"):
        abandon(world.services("operator"), claim.claim_id, WHY)
    assert len(tries) == 3


def test_an_ending_that_nobody_confirms_can_be_given_up() -> None:
    world = World()
    running_pods(world, 1)
    claim = claims(world)[0]
    world.simulated.script.fail(Call.TERMINATE, ProviderUnavailableError("cut"), times=10_000)
    world.delete_pod("train-0")
    world.pump()
    world.run(2)
    abandon(world.services("operator"), claim.claim_id, WHY)
    world.clock.advance(timedelta(minutes=1))
    world.tick()
    assert _final(world, claim).phase is Phase.TERMINATED
    assert world.pod("train-0") is None


def test_the_command_names_what_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in [key for key in os.environ if key.startswith("NEBULA_")]:
        monkeypatch.delenv(name)
    assert main(["abandon", "f" * 32, "--reason", WHY]) == 1
    error = capsys.readouterr().err
    assert "NEBULA_INSTALLATION_ID" in error
    assert "--stack nebula" in error


def test_the_command_wants_a_reason() -> None:
    with pytest.raises(SystemExit) as ended:
        main(["abandon", "f" * 32])
    assert ended.value.code == 2
    assert main(["abandon", "f" * 32, "--reason", " "]) == 2
