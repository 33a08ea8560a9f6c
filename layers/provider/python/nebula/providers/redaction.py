"""Keeps secrets out of texts that come back from a provider: it may quote what we sent."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import SecretStr

MAX_TEXT = 512
_SHORTEST = 4


def redact(text: str, secrets: Iterable[SecretStr] = (), *, limit: int = MAX_TEXT) -> str:
    """The text on one line, without the secrets, cut to ``limit`` characters.

    Secrets are taken out before the cut, longest first, so that no half of one remains. Values of
    fewer than four characters are left: taking out every ``1`` would leave no text.
    """
    for value in sorted({secret.get_secret_value() for secret in secrets}, key=len, reverse=True):
        for part in (value, *value.splitlines()):
            if len(part) >= _SHORTEST:
                text = text.replace(part, "***")
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
