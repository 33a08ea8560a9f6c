"""The providers of an installation by name, each built when it is first asked for.

A new provider is one line in ``BUILDERS``. Its package is imported only when its key exists.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock

from pydantic import SecretStr

from nebula.clock import Clock
from nebula.http import HttpClient, Limits, new_session
from nebula.observability import Telemetry
from nebula.parameters import Parameters, ParameterUnavailableError
from nebula.providers.base import Provider
from nebula.providers.errors import ProviderUnavailableError, ProviderUnconfiguredError


@dataclass(frozen=True)
class Surroundings:
    """What a builder may use besides the key.

    ``environment`` holds endpoints such as ``RUNPOD_API_BASE_URL``; ``limits`` bound one call, but for creates.
    """

    clock: Clock
    telemetry: Telemetry
    environment: Mapping[str, str]
    limits: Limits = field(default_factory=Limits)


Builder = Callable[[SecretStr, Surroundings], Provider]


def _runpod(key: SecretStr, around: Surroundings) -> Provider:
    from nebula.providers.runpod import build
    from nebula.providers.runpod.client import DEFAULT_BASE_URL

    endpoint = around.environment.get("RUNPOD_API_BASE_URL") or DEFAULT_BASE_URL
    http = HttpClient(new_session(), limits=around.limits)
    return build(api_key=key, base_url=endpoint, clock=around.clock, telemetry=around.telemetry, http=http)


def _simulated(key: SecretStr, around: Surroundings) -> Provider:
    from nebula.providers.simulated import build

    return build(key, around.clock)


BUILDERS: Mapping[str, Builder] = {"runpod": _runpod, "simulated": _simulated}


class ProviderFactory:
    """See ``Providers``. The key of a provider is the parameter ``<path>/<name>``.

    A provider is built again when its key changes. Safe to share between threads.
    """

    def __init__(
        self,
        parameters: Parameters,
        path: str,
        surroundings: Surroundings,
        builders: Mapping[str, Builder] = BUILDERS,
    ) -> None:
        self._parameters = parameters
        self._path = path.rstrip("/")
        self._surroundings = surroundings
        self._builders = builders
        self._lock = Lock()
        self._built: dict[str, tuple[SecretStr, Provider]] = {}

    def names(self) -> tuple[str, ...]:
        """See ``Providers``."""
        return tuple(self._builders)

    def get(self, name: str) -> Provider:
        """See ``Providers``. ``ProviderUnavailableError`` when nobody can tell whether it has a key."""
        key = self._key(name)
        with self._lock:
            built = self._built.get(name)
            if built is None or built[0] != key:
                built = self._built[name] = (key, self._builders[name](key, self._surroundings))
            return built[1]

    def fingerprint(self, name: str) -> str:
        """See ``Providers``. Keyed by the key itself, which is long and random: nobody guesses it from here."""
        endpoint = self._surroundings.environment.get(f"{name.upper()}_API_BASE_URL", "")
        key = self._key(name).get_secret_value().encode()
        return hmac.new(key, f"nebula/{name}/{endpoint}".encode(), hashlib.sha256).hexdigest()[:16]

    def _key(self, name: str) -> SecretStr:
        if name not in self._builders:
            raise ProviderUnconfiguredError(f"{name} is not a provider of this release")
        try:
            key = self._parameters.get(f"{self._path}/{name}")
        except ParameterUnavailableError as error:
            raise ProviderUnavailableError(str(error)) from None
        if key is None or not key.get_secret_value().strip():
            raise ProviderUnconfiguredError(f"{name} has no key: parameter {self._path}/{name} is absent or empty")
        return key
