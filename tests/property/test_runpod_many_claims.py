"""Two hundred claims while a fifth of all calls fails: exactly two hundred pods, and none afterwards.

The caller follows the rules of the ledger: an attempt is on record before its create, an unknown outcome
is looked for by mark, *never made* needs two complete listings ten seconds apart that began after the
lease ended plus the provider's visibility delay, and *gone* needs an accepted delete and an absence.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
from nebula.domain.instance import Mark
from nebula.providers.errors import (
    NoCapacityError,
    ProviderError,
    ProviderUnavailableError,
    RateLimitedError,
    UnsupportedAcceleratorError,
)
from nebula.providers.runpod import RunPodProvider

from local.runpod.faults import CHAOS_KINDS, Chaos
from tests.support.runpod import INSTALLATION, NVL, PCIE, SXM, RunPodWorld, request

CLAIMS = 200
LEASE = timedelta(seconds=60)
GAP = timedelta(seconds=10)
MOST_ROUNDS = 60


@dataclass
class Row:
    """One claim's row of the ledger, as far as this needs it."""

    number: int
    attempt: int = 1
    called: bool = False
    instance_id: str | None = None
    lease_until: datetime | None = None
    absent_since: datetime | None = None
    deleted: bool = False
    gone: bool = False

    @property
    def mark(self) -> Mark:
        return Mark(installation=INSTALLATION, claim_id=f"{self.number:032x}", attempt=self.attempt)


def step(world: RunPodWorld, provider: RunPodProvider, row: Row) -> None:
    """Take one claim one step on."""
    now = world.clock.now()
    if row.called:
        recover(world, provider, row, now)
        return
    row.called, row.lease_until = True, now + LEASE
    try:
        made = provider.provision(request(of=row.mark, types=(PCIE, NVL, SXM)))
    except (NoCapacityError, RateLimitedError, UnsupportedAcceleratorError):
        row.attempt, row.called = row.attempt + 1, False
    except ProviderUnavailableError:
        pass
    else:
        row.instance_id = made.id


def recover(world: RunPodWorld, provider: RunPodProvider, row: Row, now: datetime) -> None:
    """Look for what an attempt of unknown outcome made; give the attempt up only with proof."""
    try:
        found = provider.find(row.mark)
    except ProviderError:
        return
    if found is not None:
        row.instance_id = found.id
        return
    assert row.lease_until is not None
    if now < row.lease_until + provider.capabilities.visibility_delay:
        return
    if row.absent_since is None:
        row.absent_since = now
    elif now - row.absent_since >= GAP:
        row.attempt, row.called, row.absent_since = row.attempt + 1, False, None


def end(provider: RunPodProvider, row: Row) -> None:
    """Delete, then confirm."""
    assert row.instance_id is not None
    try:
        if not row.deleted:
            provider.terminate(row.instance_id)
            row.deleted = True
        row.gone = provider.get(row.instance_id) is None
    except ProviderError:
        return


@pytest.mark.parametrize(("seed", "visible"), [(1, 0), (2, 4)])
def test_faults_neither_double_nor_leak(seed: int, visible: int) -> None:
    world = RunPodWorld()
    world.account.timing.visible = timedelta(seconds=visible)
    provider = world.provider
    foreign = world.account.create_pod({"name": "theirs", "image": "x", "disk": 1, "gpu": {"id": SXM}, "env": {}})
    world.account.faults.chaos = Chaos(share=0.2, kinds=CHAOS_KINDS, seed=seed)
    rows = [Row(number) for number in range(CLAIMS)]

    for _ in range(MOST_ROUNDS):
        waiting = [row for row in rows if row.instance_id is None]
        for row in waiting:
            step(world, provider, row)
        world.pass_time(7 if waiting else 0)
    alive = {pod.id: pod.render(world.clock.now())["env"] for pod in world.account.alive() if pod.id != foreign.id}
    assert len(alive) == CLAIMS
    assert {row.instance_id for row in rows} == set(alive)
    for row in rows:
        assert alive[row.instance_id or ""]["NEBULA_CLAIM"] == row.mark.claim_id
        assert alive[row.instance_id or ""]["NEBULA_ATTEMPT"] == str(row.attempt)
    assert world.account.most_alive == CLAIMS + 1
    assert any(row.attempt > 1 for row in rows)

    for _ in range(MOST_ROUNDS):
        for row in rows:
            if not row.gone:
                end(provider, row)
    assert all(row.gone for row in rows)
    assert world.account.alive() == [foreign]
