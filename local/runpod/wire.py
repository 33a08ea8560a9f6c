"""Answers of the simulator and the problem documents that RunPod sends for errors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple


class Response(NamedTuple):
    """Status, headers and body of one answer."""

    status: int
    headers: dict[str, str]
    body: bytes


class ProblemError(Exception):
    """An error answer (``application/problem+json``)."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        errors: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.errors = list(errors)
        self.headers = dict(headers or {})

    def response(self) -> Response:
        """The answer as sent."""
        content: dict[str, Any] = {"title": title_of(self.status), "status": self.status, "detail": self.detail}
        if self.errors:
            content["errors"] = self.errors
        headers = {"Content-Type": "application/problem+json", **self.headers}
        return Response(self.status, headers, json.dumps(content).encode())


def title_of(status: int) -> str:
    """The short summary of a status."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"


def answer(status: int, content: Any = None) -> Response:
    """A JSON answer; without ``content`` one that has no body."""
    if content is None:
        return Response(status, {}, b"")
    return Response(status, {"Content-Type": "application/json"}, json.dumps(content).encode())


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object of a request body, else 400 (the real text of that is unknown)."""
    try:
        content = json.loads(body or b"null")
    except ValueError:
        raise ProblemError(400, "request body is not valid JSON") from None
    if not isinstance(content, dict):
        raise ProblemError(422, "Request validation failed.", errors=["$: value must be an object"])
    return content
