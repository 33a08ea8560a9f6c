"""One ladder for whatever work on a single claim may raise, wherever many claims are worked on."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from nebula.kubernetes.api import ClusterUnavailableError
from nebula.providers.errors import ProviderUnavailableError
from nebula.stores.claims import ConflictError, LedgerBusyError
from nebula.workflows import observe, vanished

from tests.support.mischief import claims, force_delete, running_pods, said
from tests.support.world import World

THROTTLED = ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow down"}}, "PutItem")
TROUBLE = [
    ClusterUnavailableError("no answer"),
    ProviderUnavailableError("no answer"),
    LedgerBusyError("rows held"),
    THROTTLED,
    ReadTimeoutError(endpoint_url="https://dynamodb.invalid"),
]
#: Each user of the ladder: what it calls per claim, and its word for what was not done.
LOOK = (observe, "settle", "claim not settled")
SWEEP = (vanished, "read_pod", "claim not ended")


def failing(error: Exception, where: tuple[object, str, str], monkeypatch: pytest.MonkeyPatch) -> World:
    """A world with one running Pod that vanished, after a minute in which work on its claim fails."""
    world = World()
    (name,) = running_pods(world, 1)
    force_delete(world, name)

    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(where[0], where[1], fails)
    world.minute(pump=False)
    return world


@pytest.mark.parametrize("where", [LOOK, SWEEP], ids=["look", "sweep"])
@pytest.mark.parametrize("error", TROUBLE, ids=lambda error: type(error).__name__)
def test_trouble_outside_is_told_as_what_was_not_done(
    error: Exception, where: tuple[object, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = failing(error, where, monkeypatch)
    (claim,) = claims(world)
    assert said(world, where[2])[0]["claim_id"] == claim.claim_id
    assert world.telemetry.total("Defects") == 0


@pytest.mark.parametrize("where", [LOOK, SWEEP], ids=["look", "sweep"])
def test_a_claim_that_moved_meanwhile_is_no_trouble(
    where: tuple[object, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = failing(ConflictError("moved"), where, monkeypatch)
    assert said(world, "claim moved meanwhile")
    assert said(world, where[2]) == []
    assert world.telemetry.total("Defects") == 0


@pytest.mark.parametrize("where", [LOOK, SWEEP], ids=["look", "sweep"])
def test_what_nobody_foresaw_is_a_defect_told_without_its_text(
    where: tuple[object, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = failing(RuntimeError("password=hunter2"), where, monkeypatch)
    told = said(world, "claim failed")
    assert told[0]["error"].startswith("RuntimeError at test_one_claim.py:")
    assert "hunter2" not in str(world.telemetry.lines)
    assert world.telemetry.total("Defects") == len(told) > 0
