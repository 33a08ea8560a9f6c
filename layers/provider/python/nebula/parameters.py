"""Parameter Store: provider keys and cluster access, decrypted, remembered for five minutes.

Absence is remembered too, so that a provider without a key costs one call in five minutes. A failed read is never
absence: it raises, or shows what was read before.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from botocore.exceptions import BotoCoreError, ClientError
from pydantic import SecretStr

from nebula.clock import Clock

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
        self._clock = clock
        self._remember = remember
        self._lock = Lock()
        self._values: dict[str, tuple[datetime, SecretStr | None]] = {}
        self._names: dict[str, tuple[datetime, tuple[str, ...]]] = {}

    def get(self, name: str) -> SecretStr | None:
        """See ``Parameters``."""
        now = self._clock.now()
        with self._lock:
            remembered = self._values.get(name)
        if remembered is not None and now < remembered[0]:
            return remembered[1]
        try:
            value = self._read(name)
        except (ClientError, BotoCoreError) as error:
            if remembered is not None and remembered[1] is not None:
                return remembered[1]
            raise _unavailable(name, error) from None
        with self._lock:
            self._values[name] = (now + self._remember, value)
        return value

    def names(self, path: str) -> tuple[str, ...]:
        """See ``Parameters``."""
        now = self._clock.now()
        with self._lock:
            remembered = self._names.get(path)
        if remembered is not None and now < remembered[0]:
            return remembered[1]
        try:
            found = self._list(path)
        except (ClientError, BotoCoreError) as error:
            if remembered is not None:
                return remembered[1]
            raise _unavailable(path, error) from None
        with self._lock:
            self._names[path] = (now + self._remember, found)
        return found

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


def _unavailable(name: str, error: Exception) -> ParameterUnavailableError:
    code = error.response["Error"]["Code"] if isinstance(error, ClientError) else type(error).__name__
    return ParameterUnavailableError(f"{name} cannot be read: {code}")
