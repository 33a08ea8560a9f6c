"""Docker's two configuration formats, as image pull Secrets hold them.

``.dockerconfigjson`` is ``{"auths": {KEY: ENTRY}}`` and may name credential helpers; the legacy
``.dockercfg`` is the inner map alone. An entry holds ``auth`` (base64 of ``user:password``), which beats
``username`` and ``password``, or a token that only its own client can use.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr

from nebula.credentials.matching import normalise_key

_TOKENS = ("identitytoken", "registrytoken")


class BrokenDockerConfigError(ValueError):
    """The text is not a Docker configuration. The message names what is wrong, never a value."""


@dataclass(frozen=True)
class DockerEntry:
    """One registry entry: ``key`` is normalised.

    Without ``username`` the entry cannot be lent, and ``unusable`` says why.
    """

    key: str
    username: SecretStr | None = None
    password: SecretStr | None = None
    unusable: str = ""


@dataclass(frozen=True)
class DockerConfig:
    """A parsed configuration: entries in order of preference, and helpers by normalised registry."""

    entries: tuple[DockerEntry, ...]
    helpers: Mapping[str, str]
    store: str = ""


def parse_docker_config(text: bytes, *, legacy: bool = False) -> DockerConfig:
    """Read a configuration; BrokenDockerConfigError when any part of it cannot be read.

    One broken entry fails the whole, as in a kubelet. Of several spellings of one key, the one
    already in normal form comes first, then the order of the document.
    """
    document = _loaded(text)
    auths = _object(document if legacy else document.get("auths"), "auths")
    store = "" if legacy else _text(document.get("credsStore"), "credsStore")
    helpers = {} if legacy else _object(document.get("credHelpers"), "credHelpers")
    spelled = sorted(auths.items(), key=lambda item: normalise_key(item[0]) != item[0])
    return DockerConfig(
        entries=tuple(_entry(key, _object(value, "entry"), store) for key, value in spelled),
        helpers={normalise_key(key): _text(value, "credHelpers") for key, value in helpers.items()},
        store=store,
    )


def _entry(key: str, value: Mapping[str, Any], store: str) -> DockerEntry:
    normal = normalise_key(key)
    username, password = _text(value.get("username"), "username"), _text(value.get("password"), "password")
    auth = _text(value.get("auth"), "auth")
    if auth:
        username, password = _decoded(auth)
    if username and password:
        return DockerEntry(key=normal, username=SecretStr(username), password=SecretStr(password))
    token = next((name for name in _TOKENS if value.get(name)), None)
    if token is not None:
        return DockerEntry(key=normal, unusable=f"holds a token ({token}) instead of a user and password")
    if store:
        return DockerEntry(key=normal, unusable="leaves its password to a credential store (credsStore)")
    return DockerEntry(key=normal, unusable="has no user and password")


def _decoded(auth: str) -> tuple[str, str]:
    """``user:password`` of an ``auth`` field, base64 with or without padding."""
    plain = _plain(auth)
    if plain is None:
        raise BrokenDockerConfigError("auth is not base64 text")
    username, colon, password = plain.partition(":")
    if not colon:
        raise BrokenDockerConfigError("auth has no colon")
    return username, password


def _plain(auth: str) -> str | None:
    """The decoded text, None when it is none. The errors of decoding hold what they choked on: none may rise."""
    unbroken = auth.replace("\n", "").replace("\r", "")
    with contextlib.suppress(binascii.Error, ValueError):
        return base64.b64decode(unbroken + "=" * (-len(unbroken) % 4), validate=True).decode()
    return None


def _loaded(text: bytes) -> Mapping[str, Any]:
    document: object = None
    with contextlib.suppress(ValueError, RecursionError):
        document = json.loads(text)
    if document is None:
        raise BrokenDockerConfigError("not JSON")
    return _object(document, "document")


def _object(value: object, where: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise BrokenDockerConfigError(f"{where} is not an object")
    return {_encodable(key): item for key, item in value.items()}


def _text(value: object, where: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BrokenDockerConfigError(f"{where} is not text")
    return _encodable(value)


def _encodable(text: str) -> str:
    """Half a surrogate pair fits in no ledger and no API. A kubelet's JSON reads it as U+FFFD, and so does this."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
