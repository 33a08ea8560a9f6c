"""The providers without keys and without network: their abilities, their regions and their shipped prices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import requests
from nebula.clock import Clock
from nebula.http import HttpClient, Limits
from nebula.observability import MemoryTelemetry
from nebula.providers.base import Capabilities, OfferingList, Provider, RegionSet
from nebula.providers.errors import ProviderUnconfiguredError
from nebula.providers.runpod import build
from nebula.providers.simulated import SimulatedProvider
from pydantic import SecretStr
from requests.adapters import BaseAdapter


class _NoNetwork(BaseAdapter):
    """Answers every call as a broken network does, so that a provider falls back on what it ships."""

    def send(self, *_args: Any, **_kwargs: Any) -> requests.Response:
        raise requests.ConnectionError("no network here")

    def close(self) -> None:
        """Nothing is open."""


class _Shipped:
    """A provider's planning half, with the note that says what its prices are."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self.name = provider.name

    @property
    def capabilities(self) -> Capabilities:
        return self._provider.capabilities

    def regions(self, declared: Sequence[str]) -> tuple[RegionSet, ...]:
        return self._provider.regions(declared)

    def offerings(self) -> OfferingList:
        return self._provider.offerings().model_copy(update={"note": "shipped prices; stock is not known"})


class OfflineProviders:
    """See ``Providers``; only good for planning: what would be bought cannot be bought here."""

    def __init__(self, clock: Clock) -> None:
        self._builders: dict[str, Callable[[], Provider]] = {
            "runpod": lambda: _runpod(clock),
            "simulated": lambda: SimulatedProvider(clock),
        }
        self._built: dict[str, Provider] = {}

    def names(self) -> tuple[str, ...]:
        """See ``Providers``."""
        return tuple(self._builders)

    def get(self, name: str) -> Provider:
        """See ``Providers``."""
        if name not in self._builders:
            raise ProviderUnconfiguredError(f"{name} is not a provider of this release")
        if name not in self._built:
            self._built[name] = cast("Provider", _Shipped(self._builders[name]()))
        return self._built[name]

    def fingerprint(self, name: str) -> str:
        """See ``Providers``: there is no key here."""
        del name
        return ""


def _runpod(clock: Clock) -> Provider:
    session = requests.Session()
    session.mount("https://", _NoNetwork())
    http = HttpClient(session, limits=Limits(tries=1))
    return build(api_key=SecretStr("offline"), clock=clock, telemetry=MemoryTelemetry(), http=http)
