"""Refusals as an API server words them: a ``Status`` object with reason, details and causes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

Object = dict[str, Any]

#: Told to callers as BadRequest.
UNDECODABLE = "Undecodable"
_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


class Cause(NamedTuple):
    """One field that was refused. ``reason`` is ``FieldValueInvalid`` or its like."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"


class ApiError(Exception):
    """A refusal; ``status()`` is its body."""

    def __init__(
        self, code: int, message: str, *, reason: str = "", causes: Sequence[Cause] = (), details: Object | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason or _REASONS[code]
        self.message = message
        self._details = dict(details or {})
        if causes:
            self._details["causes"] = [
                {"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes
            ]

    def status(self) -> Object:
        """The ``Status`` object."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": "BadRequest" if self.reason == UNDECODABLE else self.reason,
            "details": self._details,
            "code": self.code,
        }

    def encoded(self) -> bytes:
        """The ``Status`` object as JSON."""
        return json.dumps(self.status(), separators=(",", ":")).encode()


def not_found(resource: str, name: str) -> ApiError:
    """404 of one object; ``resource`` is the plural with its group."""
    plural, _, group = resource.partition(".")
    details = {"name": name, "kind": plural, **({"group": group} if group else {})}
    return ApiError(404, f'{resource} "{name}" not found', details=details)


def conflict(resource: str, name: str, why: str) -> ApiError:
    """409: the object moved, or a precondition failed."""
    message = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    return ApiError(409, message, details={"name": name, "kind": resource.partition(".")[0]})


def invalid(kind: str, name: str, *causes: Cause) -> ApiError:
    """422 with its causes."""
    text = ", ".join(f"{cause.field}: {cause.message}" for cause in causes)
    return ApiError(422, f'{kind} "{name}" is invalid: {text}', causes=causes, details={"name": name, "kind": kind})


def bad_request(message: str) -> ApiError:
    """400: the request cannot be read."""
    return ApiError(400, message)


def undecodable(message: str) -> ApiError:
    """400: a field of the object has the wrong JSON type or form; 422 where a patch made it so."""
    return ApiError(400, message, reason=UNDECODABLE)
