"""A password that is over is forgotten after 400 days, all of its rows together; any other never."""

from __future__ import annotations

from datetime import timedelta

import pytest
from nebula.domain.credential import Credential, CredentialKey, CredentialState
from nebula.events.details import DetailType
from nebula.workflows.forget import KEEP_RETIRED, let_forget
from nebula.workflows.revoke import acknowledge_revocation

from tests.support.lending import DAY, HOUR, START, Lending

RETIRED = CredentialState.RETIRED


def row(world: Lending, generation: int = 1, fingerprint: str = "abc", **changes: object) -> Credential:
    key = CredentialKey(provider="simulated", account="acct", fingerprint=fingerprint, generation=generation)
    made = Credential(
        key=key, registry="ghcr.io", state=RETIRED, created_at=START, last_used_at=START, retired_at=START
    )  # fmt: skip
    return world.credentials.create(made.model_copy(update=changes))


def forgotten(world: Lending, after: timedelta) -> list[bool]:
    """Which of the rows may go, that long after the start; what is returned is what stands."""
    world.clock.advance(START + after - world.clock.now())
    rows = let_forget(world.services(), world.rows())
    assert list(rows) == world.rows()
    return [one.forget_at is not None for one in rows]


def lent_and_unused() -> Lending:
    world = Lending()
    world.put_secret()
    world.end(world.start())
    world.clock.advance(7 * DAY)
    return world


def test_an_unused_credential_may_go_400_days_after_its_retirement_and_not_before() -> None:
    world = lent_and_unused()
    world.retire()
    assert world.row().state is RETIRED
    world.clock.advance(timedelta(days=400) - HOUR)
    world.retire()
    assert world.row().forget_at is None
    world.clock.advance(HOUR)
    world.retire()
    assert world.row().forget_at == world.clock.now()
    before = world.row()
    world.clock.advance(HOUR)
    world.retire()
    assert world.row() == before


def test_a_password_that_waits_for_its_revocation_stays_until_400_days_after_a_person_has_spoken() -> None:
    world = lent_and_unused()
    world.delete_secret()
    world.retire()
    world.clock.advance(2 * HOUR)
    world.retire()
    assert world.row().state is RETIRED
    world.clock.advance(800 * DAY)
    world.retire()
    assert world.row().forget_at is None
    assert acknowledge_revocation(world.services(), str(world.row().key))
    world.clock.advance(399 * DAY)
    world.retire()
    assert world.row().forget_at is None
    world.clock.advance(DAY)
    world.retire()
    assert world.row().forget_at == world.clock.now()


@pytest.mark.parametrize("state", [state for state in CredentialState if state is not RETIRED])
def test_a_row_in_any_other_state_is_never_forgotten(state: CredentialState) -> None:
    world = Lending()
    row(world, state=state)
    assert forgotten(world, 4000 * DAY) == [False]


@pytest.mark.parametrize("state", [state for state in CredentialState if state is not RETIRED])
def test_nor_is_an_older_generation_of_it(state: CredentialState) -> None:
    world = Lending()
    row(world, 1)
    row(world, 2, state=state)
    assert forgotten(world, 4000 * DAY) == [False, False]


def test_generations_go_together_so_that_none_asks_again_when_a_newer_one_is_gone() -> None:
    world = Lending()
    old = row(world, 1, superseded_at=START)
    row(world, 2, superseded_at=START, revocation_acknowledged_at=START + DAY, retired_at=START + HOUR)
    assert forgotten(world, KEEP_RETIRED) == [False, False]
    assert forgotten(world, DAY + KEEP_RETIRED) == [True, True]
    world.credentials._rows = {str(old.key): world.credentials._rows[str(old.key)]}
    world.clock.advance(HOUR)
    world.retire()
    assert world.told(DetailType.CREDENTIAL_REVOCATION_REQUIRED) == []


def test_passwords_are_apart() -> None:
    world = Lending()
    row(world, 1, "abc")
    row(world, 1, "def", superseded_at=START)
    assert forgotten(world, KEEP_RETIRED) == [True, False]


def test_a_password_lent_again_after_its_rows_are_gone_begins_at_generation_1() -> None:
    world = lent_and_unused()
    world.retire()
    world.credentials._rows.clear()
    world.start("again")
    assert world.row().key.generation == 1
    assert world.row().state is CredentialState.ACTIVE
