"""Providers by name: built once per key, and never confused with absence."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from nebula.clock import ManualClock
from nebula.observability import MemoryTelemetry
from nebula.parameters import MemoryParameters
from nebula.providers.base import Provider
from nebula.providers.errors import ProviderUnavailableError, ProviderUnconfiguredError
from nebula.providers.factory import BUILDERS, ProviderFactory, Surroundings
from nebula.providers.simulated import SimulatedProvider
from pydantic import SecretStr

PATH = "/nebula/i/providers"


def factory(parameters: MemoryParameters, builds: list[str] | None = None) -> ProviderFactory:
    clock = ManualClock(datetime(2026, 11, 1, tzinfo=UTC))
    around = Surroundings(clock=clock, telemetry=MemoryTelemetry(), environment={})
    if builds is None:
        return ProviderFactory(parameters, PATH + "/", around)

    def build(key: SecretStr, given: Surroundings) -> Provider:
        builds.append(key.get_secret_value())
        return SimulatedProvider(given.clock)

    return ProviderFactory(parameters, PATH, around, {"runpod": build})


def test_every_known_provider_is_named_configured_or_not() -> None:
    assert factory(MemoryParameters()).names() == tuple(BUILDERS)
    assert {"runpod", "simulated"} <= set(BUILDERS)


@pytest.mark.parametrize("values", [{}, {f"{PATH}/runpod": "  "}])
def test_a_provider_without_a_key_says_which_parameter_is_missing(values: dict[str, str]) -> None:
    with pytest.raises(ProviderUnconfiguredError, match=f"{PATH}/runpod"):
        factory(MemoryParameters(values)).get("runpod")


def test_an_unknown_name_is_unconfigured() -> None:
    with pytest.raises(ProviderUnconfiguredError, match="gcp"):
        factory(MemoryParameters({f"{PATH}/gcp": "key"})).get("gcp")


def test_a_key_that_cannot_be_read_is_unknown_and_not_absent() -> None:
    parameters = MemoryParameters({f"{PATH}/runpod": "key"})
    parameters.unavailable = True
    with pytest.raises(ProviderUnavailableError):
        factory(parameters).get("runpod")


def test_one_object_until_the_key_changes() -> None:
    builds: list[str] = []
    parameters = MemoryParameters({f"{PATH}/runpod": "one"})
    providers = factory(parameters, builds)
    first = providers.get("runpod")
    assert providers.get("runpod") is first
    parameters.values[f"{PATH}/runpod"] = "two"
    assert providers.get("runpod") is not first
    assert builds == ["one", "two"]


def test_a_key_that_appears_is_enough() -> None:
    parameters = MemoryParameters()
    providers = factory(parameters)
    with pytest.raises(ProviderUnconfiguredError):
        providers.get("simulated")
    parameters.values[f"{PATH}/simulated"] = "{}"
    assert providers.get("simulated").name == "simulated"
