"""Rotation is noticed by GETs alone, and silence is never an answer."""

from __future__ import annotations

from datetime import timedelta

import pytest
from nebula.domain.credential import CredentialState
from nebula.events.details import DetailType
from nebula.kubernetes.api import ClusterUnavailableError
from nebula.workflows.lend import record_credential
from nebula.workflows.retire import refresh_sources, secret_changed
from pydantic import SecretStr

from tests.support.lending import PASSWORD, Lending, pull_secret

ACTIVE, SUPERSEDED = CredentialState.ACTIVE, CredentialState.SUPERSEDED


@pytest.fixture
def world() -> Lending:
    made = Lending()
    made.put_secret()
    made.start()
    made.api.reads.clear()
    return made


def _changed(world: Lending, name: str = "pull", cluster: str = "prod") -> int:
    return secret_changed(world.services(function="credential_retirement"), cluster, "default", name)


def test_a_rotated_secret_supersedes_the_old_password_and_the_new_one_is_used_at_once(world: Lending) -> None:
    world.put_secret(f"{PASSWORD}-2")
    assert _changed(world) == 1
    assert (world.row().state, world.row().superseded_at) == (SUPERSEDED, world.clock.now())
    (told,) = world.told(DetailType.CREDENTIAL_SUPERSEDED)
    assert told.reason == "no Secret yields it any more"
    world.start("next")
    assert sorted(world.states()) == [ACTIVE, SUPERSEDED]
    assert _changed(world) == 0, "told once"


def test_a_deleted_secret_supersedes_too(world: Lending) -> None:
    world.delete_secret()
    assert _changed(world) == 1
    assert world.row().state is SUPERSEDED


@pytest.mark.parametrize("broken", [pull_secret(b"{"), {"type": "Opaque", "data": {}}])
def test_a_secret_that_yields_nothing_any_more_supersedes(world: Lending, broken: dict[str, object]) -> None:
    world.api.secrets["default", "pull"] = broken
    assert _changed(world) == 1
    assert world.row().state is SUPERSEDED


def test_a_password_that_another_secret_still_yields_stays_active(world: Lending) -> None:
    world.put_secret(name="other")
    world.start("second", "other")
    world.delete_secret()
    assert _changed(world) == 1
    assert (world.row().state, world.row().sources) == (ACTIVE, ("prod/default/other",))
    world.delete_secret("other")
    assert _changed(world, "other") == 1
    assert world.row().state is SUPERSEDED


def test_a_rollback_is_noticed_without_a_use(world: Lending) -> None:
    world.delete_secret()
    _changed(world)
    world.put_secret()
    assert _changed(world) == 1
    assert (world.row().state, world.row().superseded_at) == (ACTIVE, None)


def test_an_unchanged_secret_writes_nothing(world: Lending) -> None:
    writes = world.credentials.writes
    assert _changed(world) == 0
    assert world.credentials.writes == writes


@pytest.mark.parametrize("silence", ["down", "forbidden", "unknown cluster"])
def test_silence_supersedes_nothing(world: Lending, silence: str) -> None:
    world.delete_secret()
    world.api.down = silence == "down"
    world.api.forbidden = {"default"} if silence == "forbidden" else set()
    if silence == "unknown cluster":
        world.clusters.apis.clear()
    assert _changed(world) == 0
    assert world.row().state is ACTIVE
    assert any(message == "pull secret unknown" for _, message, _ in world.telemetry.lines)


def test_a_cluster_that_does_not_answer_is_asked_once_per_run(world: Lending) -> None:
    for number in range(5):
        world.put_secret(f"{PASSWORD}-{number}", name=f"s{number}")
        world.start(f"p{number}", f"s{number}")
    world.api.reads.clear()
    world.api.down = True
    refresh_sources(world.services(), world.rows())
    assert len(world.api.reads) == 1


def test_each_secret_is_read_once_per_run_by_name(world: Lending) -> None:
    for number in range(3):
        world.put_secret(f"{PASSWORD}-{number}")
        world.start(f"p{number}")
    world.api.reads.clear()
    refresh_sources(world.services(), world.rows())
    assert world.api.reads == [("default", "pull")]


def test_an_event_about_another_secret_reads_nothing(world: Lending) -> None:
    assert _changed(world, "other") == 0
    assert _changed(world, "pull", cluster="other") == 0
    assert world.api.reads == []


def test_more_sources_than_one_run_reads_are_all_read_in_time(world: Lending) -> None:
    for number in range(7):
        world.put_secret(f"{PASSWORD}-{number}", name=f"s{number}")
        world.start(f"p{number}", f"s{number}")
    seen: set[tuple[str, str]] = set()
    for _ in range(8):
        world.api.reads.clear()
        refresh_sources(world.services(), world.rows(), limit=3)
        assert 1 <= len(world.api.reads) <= 3
        seen |= set(world.api.reads)
        world.clock.advance(timedelta(hours=1))
    assert len(seen) == 8


def test_a_password_of_more_secrets_than_are_left_in_a_turn_is_superseded_all_the_same(world: Lending) -> None:
    names = [f"copy-{number}" for number in range(5)]
    for name in (*names, *(f"other-{number}" for number in range(5))):
        world.put_secret("shared" if name in names else name, name=name)
        record_credential(world.services(), world.provider, world.pull(name))
    for name in names:
        world.delete_secret(name)
    for _ in range(6):
        refresh_sources(world.services(), world.rows(), limit=3)
        world.clock.advance(timedelta(hours=1))
    assert [row.superseded_at is not None for row in world.rows() if len(row.sources) == 5] == [True]


def test_another_fingerprint_key_supersedes_nothing(world: Lending) -> None:
    services = world.services(fingerprint_key=SecretStr("z" * 32))
    refresh_sources(services, world.rows())
    assert world.row().state is ACTIVE, "its password is in the Secret still, under another name"
    world.delete_secret()
    refresh_sources(world.services(), world.rows())
    assert world.row().state is SUPERSEDED


def test_a_row_that_is_used_meanwhile_stays_active(world: Lending) -> None:
    rows = world.rows()
    world.delete_secret()
    world.credentials.save(rows[0], rows[0].model_copy(update={"last_used_at": world.clock.now()}))
    assert refresh_sources(world.services(), rows) == tuple(rows)
    assert world.row().state is ACTIVE


def test_without_a_fingerprint_key_nothing_is_concluded(world: Lending) -> None:
    services = world.services(fingerprint_key=SecretStr(""))
    world.delete_secret()
    refresh_sources(services, world.rows())
    assert world.row().state is ACTIVE
    assert [level for level, _, _ in world.telemetry.lines if level == "error"] == ["error"]


def test_another_cluster_behind_the_same_name_says_nothing(world: Lending) -> None:
    assert dict(world.row().clusters) == {"prod": "uid-of-prod"}
    world.delete_secret()
    world.api.uid = "uid-of-another"
    assert _changed(world) == 0
    world.api.uid = "uid-of-prod"
    assert _changed(world) == 1


def test_where_a_clusters_identity_may_not_be_read_its_secrets_are_believed(world: Lending) -> None:
    world.delete_secret()
    world.api.uid = ""
    assert _changed(world) == 1


def test_a_cluster_that_falls_silent_between_two_reads_is_unknown(
    world: Lending, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent() -> str:
        raise ClusterUnavailableError("no answer")

    world.delete_secret()
    monkeypatch.setattr(world.api, "cluster_uid", silent)
    assert _changed(world) == 0


def test_a_credential_without_a_known_cluster_identity_is_judged_by_its_secret_alone(world: Lending) -> None:
    row = world.row()
    world.credentials.save(row, row.model_copy(update={"clusters": {}}))
    world.delete_secret()
    world.api.uid = "whatever"
    assert _changed(world) == 1
