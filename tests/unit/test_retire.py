"""Retirement: the order of checks, what is kept and why, and nothing foreign."""

from __future__ import annotations

from datetime import timedelta

import pytest
from nebula.credentials.policy import RetirementPolicy
from nebula.domain.credential import Credential, CredentialState
from nebula.events.details import DetailType
from nebula.providers.simulated import Call, SimulatedProvider
from nebula.workflows.lend import ensure_credential
from nebula.workflows.retire_outcome import Kind

from tests.support.claims import attempt, placed
from tests.support.lending import DAY, HOUR, PASSWORD, POLICY, Lending
from tests.support.simulated import request_for

ACTIVE, SUPERSEDED = CredentialState.ACTIVE, CredentialState.SUPERSEDED
RETIRING, RETIRED = CredentialState.RETIRING, CredentialState.RETIRED
MINUTE = timedelta(minutes=1)


def _lent(account_id: str | None = "acct", *, running: bool = False) -> Lending:
    """One credential, a week unused unless its workload runs."""
    world = Lending(account_id=account_id)
    world.put_secret()
    claim = world.start()
    if not running:
        world.end(claim)
    world.clock.advance(7 * DAY)
    return world


@pytest.mark.parametrize("account_id", ["acct", None])
def test_an_unused_credential_goes(account_id: str | None) -> None:
    world = _lent(account_id)
    report = world.retire()
    assert [o.reason for o in report.of(Kind.RETIRED)] == ["unused"]
    assert world.objects() == []
    row = world.row()
    assert (row.state, row.retired_at, row.note) == (RETIRED, world.clock.now(), "unused")
    (told,) = world.told(DetailType.CREDENTIAL_RETIRED)
    assert (told.credential_key, told.reason) == (str(row.key), "unused")
    assert world.telemetry.total("CredentialsRetired") == 1


def test_it_goes_neither_too_soon_nor_while_a_workload_lives() -> None:
    world = _lent(running=True)
    world.clock.advance(-MINUTE)
    assert world.retire().outcomes == ()
    world.clock.advance(MINUTE)
    for _ in range(3):
        assert [o.reason for o in world.retire().of(Kind.DEFERRED)] == ["live workloads use it"]
        world.clock.advance(HOUR)
    assert world.row().state is ACTIVE
    assert len(world.told(DetailType.CREDENTIAL_RETIREMENT_DEFERRED)) == 1, "told once, not every hour"
    assert world.provider.script.counts[Call.REGISTRY_DELETE] == 0


def test_a_rotated_password_goes_with_its_last_workload_and_the_new_one_stays() -> None:
    world = Lending()
    world.put_secret()
    old = [world.start("a"), world.start("b")]
    world.put_secret(f"{PASSWORD}-2")
    world.start("c")
    world.retire()
    world.end(old[0])
    world.clock.advance(2 * HOUR)
    world.retire()
    assert len(world.objects()) == 2
    world.end(old[1])
    world.retire()
    states = {row.key.fingerprint: row.state for row in world.rows()}
    assert states == {world.fingerprint(): RETIRED, world.fingerprint(f"{PASSWORD}-2"): ACTIVE}
    assert world.objects() == [f"nebula-{world.fingerprint(f'{PASSWORD}-2')}-1"]


def test_three_rotations_while_workloads_live_leave_exactly_what_is_in_use() -> None:
    world = Lending()
    claims = []
    for number in range(4):
        world.put_secret(f"{PASSWORD}-{number}")
        claims.append(world.start(f"pod-{number}"))
        world.retire()
    world.end(claims[1])
    world.end(claims[3])
    world.clock.advance(2 * HOUR)
    world.retire()
    kept = {f"nebula-{world.fingerprint(f'{PASSWORD}-{number}')}-1" for number in (0, 2, 3)}
    assert set(world.objects()) == kept, "3 is the current one: unused, but not for long"


def test_a_failed_create_leaves_a_credential_that_goes_on_time() -> None:
    world = Lending()
    world.record(PASSWORD)
    world.clock.advance(7 * DAY)
    world.retire()
    assert (world.row().state, world.row().provider_id) == (RETIRED, None)
    assert world.provider.script.counts[Call.REGISTRY_DELETE] == 0


def test_a_touch_between_reading_and_writing_wins_where_the_index_lags() -> None:
    world = _lent()

    def before_the_index_shows_it(_: str) -> list[object]:
        key, pull = world.record()
        ensure_credential(world.services(), world.provider, key, pull)
        return []

    world.claims.find_by_credential = before_the_index_shows_it  # type: ignore[method-assign, assignment]
    (outcome,) = world.retire().outcomes
    assert (outcome.kind, outcome.reason) == (Kind.DEFERRED, "it was used, or taken by another run, meanwhile")
    assert (world.row().state, world.row().last_used_at, len(world.objects())) == (ACTIVE, world.clock.now(), 1)


def test_a_claim_that_shows_only_after_retiring_began_gets_it_back() -> None:
    world = _lent()
    key = str(world.row().key)
    unpatched, asked = world.claims.find_by_credential, []

    def late(credential_key: str) -> list[object]:
        asked.append(credential_key)
        if len(asked) == 2:
            world.claims.create(placed("late", credential_key=key, attempts=(attempt(),)))
        return list(unpatched(credential_key))

    world.claims.find_by_credential = late  # type: ignore[method-assign, assignment]
    world.retire()
    assert (world.row().state, world.row().retiring_at) == (SUPERSEDED, None)
    assert len(world.objects()) == 1
    world.start("next")
    assert world.row().state is ACTIVE


def test_what_the_provider_says_is_in_use_is_kept_and_tried_again() -> None:
    world = _lent(running=True)
    claim = world.claims.all()[0]
    world.end(claim)
    stray = _stray_machine(world)
    for _ in range(2):
        (outcome,) = world.retire().of(Kind.FAILED)
        assert outcome.reason == "simulated says that a workload still uses it"
        assert world.row().state is SUPERSEDED
        world.clock.advance(HOUR)
    assert len(world.told(DetailType.CREDENTIAL_RETIREMENT_DEFERRED)) == 1
    assert world.told(DetailType.CREDENTIAL_REVOCATION_REQUIRED) == [], "its Secret still yields it"
    world.provider.console.delete(stray)
    world.retire()
    assert (world.row().state, world.objects()) == (RETIRED, [])


def _stray_machine(world: Lending) -> str:
    """A machine with the credential that no claim of ours knows any more (abandoned, say)."""
    used = str(world.row().provider_id)
    return world.provider.provision(request_for(claim="abandoned", registry_credential_id=used)).id


def test_two_objects_of_one_name_go_both() -> None:
    world = _lent()
    world.provider.add(world.row().key.object_name)
    world.retire()
    assert (world.objects(), world.row().state) == ([], RETIRED)


def test_nothing_foreign_is_touched_and_what_has_our_prefix_is_named() -> None:
    world = _lent()
    world.provider.add("nebula-0011223344556677")
    world.provider.add("team-credential")
    report = world.retire()
    assert report.unrecorded == ("simulated/nebula-0011223344556677",)
    assert world.objects() == ["nebula-0011223344556677", "team-credential"]


def test_a_dry_run_says_what_it_would_do_and_does_nothing() -> None:
    world = _lent()
    before = world.rows()
    report = world.retire(POLICY.model_copy(update={"dry_run": True}))
    assert [(o.kind, o.reason) for o in report.outcomes] == [(Kind.PLANNED, "unused")]
    assert (world.rows(), len(world.objects())) == (before, 1)


def test_past_its_maximum_age_a_credential_goes_with_its_last_workload_and_the_next_pod_gets_a_new_one() -> None:
    world = _lent(running=True)
    policy = POLICY.model_copy(update={"max_age": 7 * DAY})
    world.retire(policy)
    assert world.row().aged_out
    world.start("next")
    assert [row.key.generation for row in world.rows()] == [1, 2]
    world.end(next(claim for claim in world.claims.all() if claim.pod_name == "train"))
    world.retire(policy)
    assert [row.state for row in sorted(world.rows(), key=lambda r: r.key.generation)] == [RETIRED, ACTIVE]


def test_a_provider_may_have_a_policy_of_its_own() -> None:
    world = _lent()
    world.clock.advance(-6 * DAY)
    own = RetirementPolicy(unused_after=HOUR, superseded_after=HOUR, grace=MINUTE)
    assert world.retire().outcomes == ()
    assert world.retire(providers={"simulated": own}).of(Kind.RETIRED)


def test_work_is_bounded_and_the_rest_comes_next_time() -> None:
    world = Lending()
    for number in range(5):
        world.put_secret(f"{PASSWORD}-{number}")
        world.end(world.start(f"pod-{number}"))
    world.clock.advance(8 * DAY)
    left = []
    for _ in range(3):
        report = world.retire(limit=2)
        assert len(report.of(Kind.RETIRED)) <= 2
        left.append(len(world.objects()))
    assert left == [3, 1, 0]


def test_a_run_begins_nothing_after_its_time() -> None:
    world = _lent()
    (outcome,) = world.retire(run_time=timedelta(0)).outcomes
    assert (outcome.kind, outcome.reason) == (Kind.DEFERRED, "no time left in this run")
    assert world.row().state is ACTIVE


def test_an_ecr_password_goes_after_its_expiry_without_waiting_a_week() -> None:
    world = Lending()
    world.put_secret()
    world.end(world.start())
    row = world.row()
    world.credentials.save(row, row.model_copy(update={"expires_at": row.created_at + 12 * HOUR}))
    world.clock.advance(13 * HOUR)
    assert [o.reason for o in world.retire().of(Kind.RETIRED)] == ["its password has expired"]


def test_a_provider_without_credentials_and_one_without_a_key_are_passed_over() -> None:
    world = _lent()
    keys = dict(world.providers.keys)
    world.providers.keys.clear()
    (outcome,) = world.retire().outcomes
    assert (outcome.kind, outcome.reason) == (Kind.FAILED, "simulated: ProviderUnconfigured")
    assert world.row().state is ACTIVE
    world.providers.keys.update(keys)
    assert world.retire().of(Kind.RETIRED)


def test_each_provider_is_its_own() -> None:
    first = Lending()
    second = SimulatedProvider(first.clock, name="other", account_id="acct")
    world = Lending(SimulatedProvider(first.clock, account_id="acct"), second)
    world.clock = first.clock
    for provider in (world.provider, second):
        world.provider = provider
        world.put_secret()
        world.end(world.start(provider.name))
    world.clock.advance(8 * DAY)
    assert len(world.retire().of(Kind.RETIRED)) == 2
    assert [found for provider in (world.provider, second) for found in provider._objects] == []


def test_a_row_read_back_holds_all_that_was_written() -> None:
    world = _lent()
    world.retire()
    row = world.row()
    assert Credential.model_validate_json(row.model_dump_json()) == row
