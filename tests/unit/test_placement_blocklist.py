"""From a provider's error to a block of exactly the failed granularity."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from nebula.domain.candidate import Candidate, CapacityType, Price, Shape
from nebula.domain.nodepool import Failover
from nebula.placement.blocklist import (
    LONGEST_PAUSE,
    PROVIDER_BLOCK,
    UNSUPPORTED_BLOCK,
    block_for,
    matches,
)
from nebula.providers import errors

from tests.support.placing import NOW, block, pool

TTL = timedelta(seconds=30)


def candidate(**fields: object) -> Candidate:
    defaults = {
        "provider": "one",
        "regions": ("US-1",),
        "region": "us",
        "capacity_type": CapacityType.SPOT,
        "shape": Shape(accelerator="H100", accelerator_count=8, cpu=Decimal(4)),
        "price": Price(total=Decimal(2), source="test"),
        "reserve_per_hour": Decimal(2),
    }
    return Candidate.model_validate(defaults | fields)


@pytest.mark.parametrize("kind", [errors.NoCapacityError, errors.QuotaExceededError])
def test_capacity_blocks_the_whole_shape_its_tier_and_place(kind: type[errors.ProviderError]) -> None:
    found = block_for(kind("none left", code="400"), candidate(), pool(), NOW)
    assert found is not None
    assert found.key == "blocked/H100:8/cpu=4/mem=0Gi/disk=default/Spot/us"
    assert (found.code, found.expires_at) == ("400", NOW + TTL)
    assert matches(found, candidate())
    for other in (
        candidate(shape=Shape(accelerator="H100", accelerator_count=1, cpu=Decimal(4))),
        candidate(shape=Shape(accelerator="H100", accelerator_count=8, cpu=Decimal(5))),
        candidate(capacity_type=CapacityType.ON_DEMAND),
        candidate(region="eu"),
        candidate(parameters={"cloud": "SECURE"}),
        candidate(provider="two"),
    ):
        assert not matches(found, other)


def test_an_unsupported_accelerator_blocks_every_count_of_it_in_every_tier() -> None:
    found = block_for(errors.UnsupportedAcceleratorError("not for you"), candidate(), pool(), NOW)
    assert found is not None
    assert (found.shape, found.capacity_type, found.region) == ("H100:*", "*", "us")
    assert found.expires_at == NOW + UNSUPPORTED_BLOCK
    assert matches(found, candidate(shape=Shape(accelerator="H100", accelerator_count=1)))
    assert not matches(found, candidate(shape=Shape(accelerator="H200", accelerator_count=8)))
    assert not matches(found, candidate(region="eu"))


def test_an_unsupported_cpu_offer_blocks_cpu_only_shapes() -> None:
    found = block_for(errors.UnsupportedAcceleratorError("no"), candidate(shape=Shape()), pool(), NOW)
    assert found is not None
    assert matches(found, candidate(shape=Shape(cpu=Decimal(16))))
    assert not matches(found, candidate())


@pytest.mark.parametrize("kind", [errors.AuthenticationError, errors.InsufficientBalanceError])
def test_a_key_or_an_account_blocks_the_provider_until_a_person_acts(kind: type[errors.ProviderError]) -> None:
    found = block_for(kind("no"), candidate(), pool(), NOW)
    assert found is not None
    assert found.key == "blocked/*/*/*"
    assert found.expires_at == NOW + PROVIDER_BLOCK
    assert matches(found, candidate(region="eu", shape=Shape()))


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        (timedelta(seconds=7), timedelta(seconds=7)),
        (timedelta(0), timedelta(seconds=1)),
        (timedelta(days=1), LONGEST_PAUSE),
    ],
)
def test_a_throttle_pauses_the_provider_for_everyone(asked: timedelta, kept: timedelta) -> None:
    found = block_for(errors.RateLimitedError("slow down", retry_after=asked), candidate(), pool(), NOW)
    assert found is not None
    assert found.key == "rate_limited/*/*/*"
    assert found.expires_at == NOW + kept


@pytest.mark.parametrize(
    "kind",
    [
        errors.RequestRefusedError,
        errors.ImagePullError,
        errors.InvalidWorkloadError,
        errors.ProviderUnavailableError,
        errors.ProviderUnconfiguredError,
    ],
)
def test_what_says_nothing_of_other_pods_blocks_nothing(kind: type[errors.ProviderError]) -> None:
    assert block_for(kind("no"), candidate(), pool(), NOW) is None


def test_without_its_pool_the_default_time_holds() -> None:
    found = block_for(errors.NoCapacityError("none"), candidate(), None, NOW)
    assert found is not None
    assert found.expires_at == NOW + TTL


def test_a_wildcard_block_matches_what_it_names() -> None:
    assert matches(block(capacity_type="Spot"), candidate())
    assert not matches(block(capacity_type="OnDemand"), candidate())
    assert matches(block(region="us", shape="*"), candidate())


@pytest.mark.parametrize(
    "kind", [errors.NoCapacityError, errors.UnsupportedAcceleratorError, errors.AuthenticationError]
)
def test_one_pool_s_long_memory_takes_nothing_from_the_others_for_days(kind: type[errors.ProviderError]) -> None:
    the_pool = pool(failover=Failover(blocklist_ttl=timedelta(days=300)))
    made = block_for(kind("no"), candidate(), the_pool, NOW)
    assert made is not None
    assert made.expires_at == NOW + timedelta(hours=1)


@pytest.mark.parametrize("ttl", [timedelta(0), timedelta(milliseconds=1)])
def test_no_refusal_is_forgotten_in_the_second_in_which_it_came(ttl: timedelta) -> None:
    the_pool = pool(failover=Failover(blocklist_ttl=ttl))
    made = block_for(errors.NoCapacityError("none left"), candidate(), the_pool, NOW)
    assert made is not None
    assert made.expires_at == NOW + timedelta(seconds=1)
