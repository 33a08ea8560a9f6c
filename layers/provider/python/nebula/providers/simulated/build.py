"""Builds the simulated provider from its parameter."""

from __future__ import annotations

import json
from threading import Lock

from pydantic import SecretStr, ValidationError

from nebula.clock import Clock
from nebula.providers.errors import ProviderUnconfiguredError
from nebula.providers.simulated.machines import Behaviour
from nebula.providers.simulated.provider import SimulatedProvider

_lock = Lock()
_shared: dict[str, SimulatedProvider] = {}


def build(parameter: SecretStr, clock: Clock) -> SimulatedProvider:
    """The provider that the parameter describes: a JSON object with the fields of ``Behaviour``.

    Every function of one process gets the same object, on the clock of the first that asked, because
    its machines live nowhere else. Raises ``ProviderUnconfiguredError`` for a parameter that does not fit.
    """
    text = parameter.get_secret_value()
    with _lock:
        if text not in _shared:
            _shared[text] = SimulatedProvider(clock, behaviour=_behaviour(text))
        return _shared[text]


def _behaviour(text: str) -> Behaviour:
    try:
        return Behaviour.model_validate(json.loads(text))
    except ValidationError as error:
        fields = ", ".join(
            str(item["loc"][0]) if item["loc"] else "value" for item in error.errors(include_input=False)
        )
        raise ProviderUnconfiguredError(f"simulated: its parameter does not fit: {fields}") from None
    except ValueError:
        raise ProviderUnconfiguredError("simulated: its parameter is not JSON") from None
