"""A claim that is tried for days keeps a bounded history, and its row stays small (Y8)."""

from __future__ import annotations

import json
from datetime import timedelta

from nebula.domain.claim import AttemptOutcome, Phase
from nebula.lifecycle.transitions import KEPT_ATTEMPTS, move, take_lease, with_attempt
from nebula.stores.dynamo_claims import item_of

from tests.support.claims import NOW, candidate, placed

LINES = tuple(f"type-{n}: {'there is no capacity ' * 20}" for n in range(10))


def test_attempts_are_numbered_on_while_the_oldest_are_forgotten() -> None:
    claim = placed()
    for _ in range(500):
        claim = take_lease(claim, NOW, timedelta(seconds=120), pod_fields_hash="f", credential_key=None)
        refused = with_attempt(claim, outcome=AttemptOutcome.REFUSED, failures=LINES)
        claim = move(claim, Phase.PENDING, NOW, attempts=refused)
        claim = move(claim, Phase.PLACED, NOW, candidate=candidate())
    assert [attempt.number for attempt in claim.attempts] == list(range(500 - KEPT_ATTEMPTS, 501))
    assert claim.mark("i").attempt == 500
    assert len(json.dumps(item_of(claim))) < 200_000
