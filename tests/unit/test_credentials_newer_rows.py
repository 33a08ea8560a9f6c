"""A lent credential whose row only a newer release can read: taken for in use, and no stop for the others."""

from __future__ import annotations

from datetime import timedelta

import pytest
from nebula.credentials.policy import RetirementPolicies
from nebula.domain.credential import Credential, CredentialKey, CredentialState
from nebula.domain.unreadable import UnreadableCredential
from nebula.events.details import DetailType
from nebula.workflows.credential_report import UNKNOWN, plan_retirement, report_credentials
from nebula.workflows.forget import KEEP_RETIRED
from nebula.workflows.lend import CredentialMovedError, ensure_credential
from nebula.workflows.retire_outcome import Kind
from nebula.workflows.revoke import acknowledge_revocation
from nebula.workflows.supersede import secret_changed

from cli.credentials_table import render_report
from tests.support.lending import DAY, PASSWORD, POLICY, START, Lending

POLICIES = RetirementPolicies(default=POLICY)
REASON = "only a newer release can read its row (state)"


def make_newer(world: Lending, key: CredentialKey) -> None:
    world.credentials.hold(UnreadableCredential(line=key.line, generation=key.generation, problem="state"))


def readable(world: Lending) -> list[Credential]:
    return list(world.credentials.all(include_retired=True, unreadable=[]))


def lent(world: Lending, password: str) -> CredentialKey:
    """A password that was lent, and of which no claim is left."""
    key, pull = world.record(password)
    ensure_credential(world.services(), world.provider, key, pull)
    return key


def two_unused() -> tuple[Lending, CredentialKey, CredentialKey]:
    """Two passwords past their time, of which the first one's row is a newer release's."""
    world = Lending()
    newer, other = (lent(world, f"{PASSWORD}-{number}") for number in (1, 2))
    world.clock.advance(POLICY.unused_after * 2)
    make_newer(world, newer)
    return world, newer, other


def told(world: Lending) -> list[list[str]]:
    return [fields["credentials"] for _, line, fields in world.telemetry.lines if line == "credentials not readable"]


def test_the_others_retire_as_ever_and_its_object_stays() -> None:
    world, newer, other = two_unused()
    report = world.retire()
    assert [outcome.key for outcome in report.of(Kind.RETIRED)] == [str(other)]
    assert [(outcome.key, outcome.reason) for outcome in report.of(Kind.DEFERRED)] == [(str(newer), REASON)]
    assert world.objects() == [newer.object_name]
    assert report.unrecorded == ()
    assert told(world) == [[str(newer)]]
    assert world.telemetry.total("Defects") == 1


def test_the_plan_says_what_the_run_does() -> None:
    world, newer, other = two_unused()
    plan = plan_retirement(world.services(), POLICIES)
    assert [outcome.key for outcome in plan.of(Kind.PLANNED)] == [str(other)]
    assert [(outcome.key, outcome.reason) for outcome in plan.of(Kind.DEFERRED)] == [(str(newer), REASON)]
    assert plan.unrecorded == ()
    assert len(world.objects()) == 2


def test_the_operator_sees_it_beside_the_others_with_what_uses_it() -> None:
    world = Lending()
    world.put_secret()
    world.start()
    newer = world.row().key
    other = lent(world, f"{PASSWORD}-2")
    make_newer(world, newer)
    report = report_credentials(world.services(), POLICIES)
    assert [(line.key, line.state) for line in report.lines] == [(str(other), "Active"), (str(newer), UNKNOWN)]
    assert (report.lines[1].live_workloads, report.lines[1].reason) == (1, f"{REASON}: it stays")
    assert f"{REASON}: it stays" in render_report(report, world.clock.now())


def test_a_password_is_lent_anew_in_the_next_generation() -> None:
    world = Lending()
    first, pull = world.record(PASSWORD)
    make_newer(world, first)
    with pytest.raises(CredentialMovedError, match="cannot be read"):
        ensure_credential(world.services(), world.provider, first, pull)
    assert world.objects() == []
    second, _ = world.record()
    assert second == first.model_copy(update={"generation": 2})
    assert told(world) == [[str(first)]]
    assert ensure_credential(world.services(), world.provider, second, pull)
    assert world.objects() == [second.object_name]
    assert world.record()[0] == second
    assert world.telemetry.total("Defects") == 1


def test_an_earlier_generation_is_not_taken_up_again() -> None:
    world = Lending()
    first, _ = world.record(PASSWORD)
    row = world.row()
    second = first.model_copy(update={"generation": 2})
    world.credentials.create(row.model_copy(update={"key": second}))
    make_newer(world, second)
    third, _ = world.record()
    assert third.generation == 3
    assert readable(world)[0] == row


def test_a_changed_secret_supersedes_the_others() -> None:
    world = Lending()
    other, newer = lent(world, PASSWORD), lent(world, f"{PASSWORD}-2")
    make_newer(world, newer)
    world.put_secret(f"{PASSWORD}-3")
    assert secret_changed(world.services(), "prod", "default", "pull") == 1
    (row,) = readable(world)
    assert (row.key, row.state) == (other, CredentialState.SUPERSEDED)
    assert told(world) == [[str(newer)]]


def retired_before(world: Lending, **changes: object) -> CredentialKey:
    """The first generation of a password, retired, of whose second one nobody can tell."""
    key = CredentialKey(provider="simulated", account="acct", fingerprint="abc", generation=1)
    row = Credential(
        key=key, registry="ghcr.io", state=CredentialState.RETIRED, created_at=START, last_used_at=START
    )  # fmt: skip
    world.credentials.create(row.model_copy(update={"retired_at": START, **changes}))
    make_newer(world, key.model_copy(update={"generation": 2}))
    return key


def test_nobody_is_asked_to_revoke_a_password_that_may_be_in_use() -> None:
    world = Lending()
    retired_before(world, superseded_at=START)
    world.clock.advance(timedelta(days=8))
    world.retire()
    assert world.told(DetailType.CREDENTIAL_REVOCATION_REQUIRED) == []
    assert [line.acknowledge for line in report_credentials(world.services(), POLICIES).lines] == [False]


def test_no_row_of_its_password_is_forgotten() -> None:
    world = Lending()
    retired_before(world)
    world.clock.advance(KEEP_RETIRED + DAY)
    world.retire()
    assert [row.forget_at for row in readable(world)] == [None]


def test_an_acknowledgement_of_it_is_taken_without_effect() -> None:
    world, newer, _ = two_unused()
    assert not acknowledge_revocation(world.services(), str(newer))
    assert told(world) == [[str(newer)]]
