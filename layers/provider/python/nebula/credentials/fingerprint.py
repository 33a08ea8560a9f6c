"""What a credential is called where no secret may be: a keyed fingerprint and a masked user."""

from __future__ import annotations

import hashlib
import hmac
import json

from pydantic import SecretStr

from nebula.domain.workload import PullCredential

#: Hexadecimal digits kept of the HMAC (128 bits): part of a name at the provider, so not longer than needed.
FINGERPRINT_LENGTH = 32


def fingerprint(key: SecretStr, registry: str, username: SecretStr, password: SecretStr) -> str:
    """HMAC-SHA256 of registry, user and password, 32 lower-case hex digits.

    Keyed, because passwords chosen by people could be guessed from a plain hash. The parts are framed
    (JSON), so that no two different triples share one text. ValueError when the key is empty: an
    unkeyed fingerprint must never reach a ledger or a provider.
    """
    secret = key.get_secret_value()
    if not secret:
        raise ValueError("the fingerprint key is empty")
    framed = json.dumps([registry, username.get_secret_value(), password.get_secret_value()]).encode()
    return hmac.new(secret.encode(), framed, hashlib.sha256).hexdigest()[:FINGERPRINT_LENGTH]


def fingerprint_of(key: SecretStr, pull: PullCredential) -> str:
    """The fingerprint of a pull credential."""
    return fingerprint(key, pull.registry, pull.username, pull.password)


def key_print(key: SecretStr) -> str:
    """Which fingerprint key it is, 12 hex digits that do not tell the key: under another one nothing compares."""
    return hmac.new(key.get_secret_value().encode(), b"nebula fingerprint key", hashlib.sha256).hexdigest()[:12]


def masked(username: SecretStr) -> str:
    """The user for display: the first character, then always three stars, so that no length shows."""
    text = username.get_secret_value()
    return f"{text[:1]}***" if len(text) > 1 else "***"
