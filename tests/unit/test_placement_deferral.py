"""When a deferred claim returns."""

from __future__ import annotations

from datetime import timedelta

from nebula.placement.deferral import LONGEST, SHORTEST, backoff, jitter, retry_at

from tests.support.placing import NOW

TTL = timedelta(seconds=30)


def planned(*frees: int, waited: int = 0, claim_id: str = "a") -> timedelta:
    times = (NOW + timedelta(seconds=seconds) for seconds in frees)
    since = NOW - timedelta(seconds=waited)
    return retry_at(times, claim_id=claim_id, ttl=TTL, waiting_since=since, now=NOW) - NOW


def test_jitter_is_stable_per_claim_spread_over_claims_and_bounded() -> None:
    values = [jitter(f"claim-{number}", TTL) for number in range(200)]
    assert values == [jitter(f"claim-{number}", TTL) for number in range(200)]
    assert min(values) < TTL / 10
    assert max(values) > TTL * 0.9
    assert all(timedelta(0) <= value < TTL for value in values)


def test_the_soonest_expiry_plus_jitter() -> None:
    assert planned(40, 25) == timedelta(seconds=25) + jitter("a", TTL)


def test_a_pool_that_remembers_for_a_year_lets_no_pod_sleep_for_a_year() -> None:
    frees, year = [NOW + timedelta(seconds=30)], timedelta(days=365)
    for number in range(50):
        again = retry_at(frees, claim_id=f"claim-{number}", ttl=year, waiting_since=NOW, now=NOW)
        assert frees[0] <= again <= frees[0] + LONGEST


def test_an_expiry_in_the_past_counts_from_now() -> None:
    assert planned(-5) == jitter("a", TTL)


def test_without_an_expiry_it_backs_off_from_half_a_minute_to_five() -> None:
    assert backoff(None, NOW) == SHORTEST
    waits = [planned(waited=seconds) for seconds in (0, 60, 120, 400, 600, 100_000)]
    assert waits == sorted(waits)
    assert SHORTEST <= waits[0] <= SHORTEST + TTL
    assert waits[2] - waits[0] == timedelta(seconds=30)
    assert LONGEST <= waits[-1] <= LONGEST + TTL


def test_a_block_that_outlasts_the_longest_wait_is_not_waited_for() -> None:
    assert planned(15 * 60) <= SHORTEST + TTL
