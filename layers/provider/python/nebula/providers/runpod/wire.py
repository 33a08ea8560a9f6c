"""What RunPod's answers look like: JSON, problem documents, rate-limit headers. Tolerant of everything else."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from email.utils import parsedate_to_datetime
from typing import Any

from nebula.http import Answer

MAX_ERROR_TEXT = 512
DEFAULT_RETRY_AFTER = timedelta(seconds=30)
_MAX_RETRY_AFTER = timedelta(hours=24)
_WINDOW = re.compile(r'"(?P<name>[^"]{1,32})"(?P<parameters>(?:\s*;\s*[a-z]+=\d{1,9})+)')
_ESCAPE = re.compile(
    r"(?P<whole>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)
_PARAMETER = re.compile(r"([a-z]+)=(\d{1,9})")


def decode(body: bytes) -> Any:
    """The JSON value of a body; numbers with a point as Decimal. ValueError when it is anything else.

    Half a surrogate pair becomes U+FFFD: no ledger, URL or API could take it.
    """
    text = body.decode("utf-8")
    if "\\ud" in text or "\\uD" in text:
        text = _ESCAPE.sub(lambda match: match[0] if match["whole"] or not match["half"] else "\\ufffd", text)
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


@dataclass(frozen=True)
class Problem:
    """An error answer read as far as it goes.

    ``structured`` is True when the body has the members that RunPod's errors always have: ``status`` as
    answered with ``title`` and ``detail``, or with the older ``error``. A proxy's page and the bare
    "Not Found" of another service have not.
    ``is_object`` is True for any JSON object. ``errors`` are the schema violations of a 422.
    """

    status: int
    detail: str = ""
    errors: tuple[str, ...] = ()
    structured: bool = False
    is_object: bool = False

    @property
    def words(self) -> str:
        """All of its text in lower case, for the tables."""
        return " ".join((self.detail, *self.errors)).lower()


def read_problem(answer: Answer) -> Problem:
    """Read an error answer; never raises. (problem+json per the OpenAPI document; ``error`` was seen too.)"""
    try:
        content = decode(answer.body)
    except ValueError:
        return Problem(answer.status, detail=_plain(answer))
    if not isinstance(content, dict):
        return Problem(answer.status)
    error = content.get("error")
    if isinstance(error, dict):
        error = error.get("message")
    said = (content.get("detail"), error, content.get("message"), content.get("title"))
    texts = [text for text in said if isinstance(text, str) and text]
    documented = isinstance(content.get("title"), str) and isinstance(content.get("detail"), str)
    named = content.get("status") == answer.status and (documented or isinstance(error, str))
    errors = content.get("errors")
    violations = tuple(str(one) for one in errors if isinstance(one, str)) if isinstance(errors, list) else ()
    return Problem(answer.status, detail=texts[0] if texts else "", errors=violations, structured=named, is_object=True)


def _plain(answer: Answer) -> str:
    """A short text body as it is; of markup only that it was markup."""
    text = answer.body[:MAX_ERROR_TEXT].decode("utf-8", "replace").strip()
    return "(a page, not an API answer)" if text.startswith("<") else text


def retry_after(headers: Mapping[str, str], now: datetime) -> timedelta:
    """How long to wait after a 429: ``Retry-After`` in seconds or as a date, else the emptied window's reset.

    Between one second and a day; 30 s when nothing tells.
    """
    wait = _stated_wait(headers.get("Retry-After", "").strip(), now)
    if wait is None:
        resets = [window.resets_in for window in rate_windows(headers) if window.remaining == 0]
        wait = max(resets, default=DEFAULT_RETRY_AFTER)
    return min(max(wait, timedelta(seconds=1)), _MAX_RETRY_AFTER)


def _stated_wait(text: str, now: datetime) -> timedelta | None:
    if text.isascii() and text.isdigit():
        return timedelta(seconds=int(text[:9]))
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now


@dataclass(frozen=True)
class RateWindow:
    """One window of the account's quota; ``quota`` is None when no policy header came along."""

    name: str
    remaining: int
    resets_in: timedelta
    quota: int | None = None

    @property
    def used_percent(self) -> float | None:
        """Share of the window's quota that is used up."""
        if not self.quota:
            return None
        return max(0.0, 100 * (1 - self.remaining / self.quota))


def rate_windows(headers: Mapping[str, str]) -> tuple[RateWindow, ...]:
    """The windows of ``RateLimit`` with the quotas of ``RateLimit-Policy``; what cannot be read is left out."""
    quotas = {name: fields.get("q") for name, fields in _windows(headers.get("RateLimit-Policy", ""))}
    return tuple(
        RateWindow(name, fields["r"], timedelta(seconds=fields.get("t", 0)), quotas.get(name))
        for name, fields in _windows(headers.get("RateLimit", ""))
        if "r" in fields
    )


def _windows(header: str) -> list[tuple[str, dict[str, int]]]:
    return [
        (match["name"], {name: int(value) for name, value in _PARAMETER.findall(match["parameters"])})
        for match in _WINDOW.finditer(header[:2048])
    ]
