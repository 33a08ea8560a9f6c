"""Parameters whose value is the ARN of a secret: read from Secrets Manager in its place.

A cluster's access may be kept where a rotation or another team's rules want it; Parameter Store then holds only the
name and where to look.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, Protocol

from botocore.exceptions import BotoCoreError, ClientError
from pydantic import SecretStr

from nebula.clock import Clock
from nebula.parameters import REMEMBER, Parameters, ParameterUnavailableError
from nebula.remembering import Remembered, code_of

_ARN: Final = re.compile(r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[\w/+=.@-]+$", re.ASCII)


class SecretReader(Protocol):
    """The one call of the Secrets Manager client that is made."""

    def get_secret_value(self, *, SecretId: str) -> Any:  # noqa: N803 - the name is AWS's
        """``SecretString`` of a secret's current version."""
        ...


class SecretReferences:
    """See ``Parameters``: those of another source, an ARN of a secret replaced by what the secret holds.

    ``client`` builds the Secrets Manager client when the first reference is met: most installations have none. A
    secret is remembered as long as a parameter is, and longer while it cannot be read.
    """

    def __init__(
        self,
        parameters: Parameters,
        client: Callable[[], SecretReader],
        clock: Clock,
        *,
        remember: timedelta = REMEMBER,
    ) -> None:
        self._parameters = parameters
        self._client = client
        self._secrets: Remembered[SecretStr] = Remembered(clock, remember)

    def get(self, name: str) -> SecretStr | None:
        """See ``Parameters``. A secret that is absent, forbidden or binary is unavailable: someone promised it."""
        found = self._parameters.get(name)
        arn = "" if found is None else found.get_secret_value().strip()
        if not _ARN.match(arn):
            return found
        try:
            return self._secrets.read(arn, self._read)
        except (ClientError, BotoCoreError) as error:
            raise ParameterUnavailableError(f"the secret that {name} names cannot be read: {code_of(error)}") from None

    def names(self, path: str) -> tuple[str, ...]:
        """See ``Parameters``."""
        return self._parameters.names(path)

    def _read(self, arn: str) -> SecretStr:
        text = self._client().get_secret_value(SecretId=arn).get("SecretString")
        if not isinstance(text, str) or not text:
            raise ParameterUnavailableError("the secret that a parameter names holds no text")
        return SecretStr(text)
