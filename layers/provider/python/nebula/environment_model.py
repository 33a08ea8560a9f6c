"""A frozen model that can be read from environment variables.

Does for a few flat fields what pydantic-settings does for everything, without its hundred modules: they cost each
cold start some forty milliseconds.
"""

from __future__ import annotations

import os
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict


class EnvironmentModel(BaseModel):
    """A field ``claims_table`` is read from ``<prefix>CLAIMS_TABLE``; what is given by name goes before it.

    Text becomes the field's type as pydantic reads it (durations are ISO-8601). The error of a missing or wrong
    variable names the field and shows no value.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    environment_prefix: ClassVar[str] = "NEBULA_"

    @classmethod
    def from_environment(cls, **given: Any) -> Self:
        """Read the process's environment; raises ``pydantic.ValidationError``."""
        found = {name: os.environ.get(cls.environment_prefix + name.upper()) for name in cls.model_fields}
        return cls.model_validate({**{name: text for name, text in found.items() if text is not None}, **given})
