"""Parameter Store: provider keys and cluster access, decrypted, remembered for five minutes.

Absence is remembered too, so that a provider without a key costs one call in five minutes. A failed read is never
absence: it raises, or shows what was read before.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from botocore.exceptions import BotoCoreError, ClientError
from pydantic import SecretStr

from nebula.clock import Clock
from nebula.remembering import Remembered, code_of

if TYPE_CHECKING:
    from mypy_boto3_ssm import SSMClient

REMEMBER = timedelta(minutes=5)
_ABSENT = "ParameterNotFound"


class ParameterUnavailableError(Exception):
    """Parameter Store could not be read: nobody knows whether the parameter exists."""


class Parameters(Protocol):
    """Secret text by name."""

    def get(self, name: str) -> SecretStr | None:
        """The value; None when there is positively none. ``ParameterUnavailableError`` otherwise."""
        ...

    def names(self, path: str) -> tuple[str, ...]:
        """Names directly below a path, without the path, sorted. ``ParameterUnavailableError``."""
        ...


class SsmParameters:
    """See ``Parameters``. Safe to share between threads: two may ask for the same value at once.

    While Parameter Store cannot be read, a value read earlier stays in use, however old.
    """

    def __init__(self, client: SSMClient, clock: Clock, *, remember: timedelta = REMEMBER) -> None:
        self._client = client
        self._values: Remembered[SecretStr | None] = Remembered(clock, remember)
        self._names: Remembered[tuple[str, ...]] = Remembered(clock, remember)

    def get(self, name: str) -> SecretStr | None:
        """See ``Parameters``."""
        try:
            return self._values.read(name, self._read)
        except (ClientError, BotoCoreError) as error:
            raise _unavailable(name, error) from None

    def names(self, path: str) -> tuple[str, ...]:
        """See ``Parameters``."""
        try:
            return self._names.read(path, self._list)
        except (ClientError, BotoCoreError) as error:
            raise _unavailable(path, error) from None

    def _read(self, name: str) -> SecretStr | None:
        try:
            answer = self._client.get_parameter(Name=name, WithDecryption=True)
        except ClientError as error:
            if error.response["Error"]["Code"] == _ABSENT:
                return None
            raise
        return SecretStr(answer["Parameter"]["Value"])

    def _list(self, path: str) -> tuple[str, ...]:
        """The values stay encrypted: only names are wanted."""
        prefix = path.rstrip("/") + "/"
        paginator = self._client.get_paginator("get_parameters_by_path")
        pages = paginator.paginate(Path=prefix, Recursive=False, WithDecryption=False)
        found = [parameter["Name"].removeprefix(prefix) for page in pages for parameter in page["Parameters"]]
        return tuple(sorted(found))


class MemoryParameters:
    """See ``Parameters``. ``values`` may be changed at any time; ``unavailable`` makes every read raise."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self.values: dict[str, str] = dict(values or {})
        self.unavailable = False

    def get(self, name: str) -> SecretStr | None:
        """See ``Parameters``."""
        self._refuse(name)
        value = self.values.get(name)
        return None if value is None else SecretStr(value)

    def names(self, path: str) -> tuple[str, ...]:
        """See ``Parameters``."""
        self._refuse(path)
        prefix = path.rstrip("/") + "/"
        below = (name.removeprefix(prefix) for name in self.values if name.startswith(prefix))
        return tuple(sorted(name for name in below if "/" not in name))

    def _refuse(self, name: str) -> None:
        if self.unavailable:
            raise ParameterUnavailableError(f"{name} cannot be read")


def _unavailable(name: str, error: ClientError | BotoCoreError) -> ParameterUnavailableError:
    return ParameterUnavailableError(f"{name} cannot be read: {code_of(error)}")
