"""Keeps secrets out of texts that come back from a provider: it may quote what we sent, in any dress."""

from __future__ import annotations

import html
import json
from base64 import b64encode
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

from pydantic import SecretStr

MAX_TEXT = 512
#: Characters of an answer that are looked at: a provider may quote all that was sent, and thousands of secrets are
#: each looked for in a dozen spellings.
MOST_READ = 16 * 1024
_SHORTEST = 4
#: A provider may cut what it quotes: this many first characters of a secret are enough to know it by.
_BEGINNING = 8
#: So many last ones too; more, because the end of a value that is no password is often a plain word.
_END = 12
_HIDDEN = "***"


def redact(text: str, secrets: Iterable[SecretStr] = (), *, limit: int = MAX_TEXT) -> str:
    """The text on one line, without the secrets, cut to ``limit`` characters.

    A secret is known as it is, line by line, and as JSON, a Python or URL or HTML text or base64 would
    spell it; also by its beginning or its end, where the rest was cut off. Secrets are taken out before the cut,
    longest first, so that no half of one remains. Values of fewer than four characters are left:
    taking out every ``1`` would leave no text. Of more than ``MOST_READ`` characters the rest is not looked at.
    """
    cut, text = len(text) > MOST_READ, text[:MOST_READ]
    forms = {form for secret in secrets for form in _spellings(secret.get_secret_value()) if len(form) >= _SHORTEST}
    for form in sorted(forms, key=len, reverse=True):
        text = _without_ends(text.replace(form, _HIDDEN), form)
    # What the cut leaves of a secret may be too short to know it by.
    line = " ".join((text[:-_BEGINNING] if cut else text).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _spellings(value: str) -> Iterator[str]:
    for part in dict.fromkeys((value, *value.splitlines())):
        yield part
        yield json.dumps(part)[1:-1]
        yield json.dumps(part, ensure_ascii=False)[1:-1]
        yield repr(part)[1:-1]
        yield quote(part, safe="", errors="replace")
        yield quote_plus(part, errors="replace")
        yield html.escape(part)
        raw = part.encode("utf-8", "surrogatepass")
        yield raw.hex()
        yield from _within_base64(raw)


def _within_base64(raw: bytes) -> Iterator[str]:
    """How base64, plain or for URLs, of a text spells a value inside it (``user:password``): one way per alignment.

    The characters at both ends that mix it with its neighbours are left out.
    """
    for before in range(3):
        whole = b64encode(b"\0" * before + raw).decode("ascii").rstrip("=")
        form = whole[(0, 2, 3)[before] : -1 if (before + len(raw)) % 3 else None]
        yield form
        yield form.replace("+", "-").replace("/", "_")


def _without_ends(text: str, form: str) -> str:
    """Take out what begins or ends as the secret does."""
    return _without_beginnings(_without_beginnings(text, form, _BEGINNING)[::-1], form[::-1], _END)[::-1]


def _without_beginnings(text: str, form: str, least: int) -> str:
    """Take out every run that begins with the secret's ``least`` first characters, as far as the two agree."""
    if len(form) <= least:
        return text
    pieces, start = [], 0
    while (at := text.find(form[:least], start)) >= 0:
        end = at + least
        while end < len(text) and end - at < len(form) and text[end] == form[end - at]:
            end += 1
        pieces += [text[start:at], _HIDDEN]
        start = end
    return "".join([*pieces, text[start:]])
