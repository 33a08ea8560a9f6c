"""The simulator's core: one call in, one answer out, no sockets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from threading import RLock
from typing import ClassVar

from local.in_process import DroppedError
from local.runpod import control, schema
from local.runpod.faults import Failure
from local.runpod.routes import dispatch
from local.runpod.state import KEPT_REQUESTS, Account, Recorded
from local.runpod.wire import ProblemError, Response

Observer = Callable[[Recorded], None]


class Simulator:
    """One RunPod account. Thread-safe.

    ``now`` drives the pods' states over time. ``observers`` see every ``/v2`` call of every simulator
    in the process, for checks that span a whole test suite.
    """

    observers: ClassVar[list[Observer]] = []

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.account = Account(now)
        self._lock = RLock()

    def handle(
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> Response:
        """Answer one call. Raises ``DroppedError`` where the connection is cut."""
        with self._lock:
            if path.startswith(control.PREFIX):
                try:
                    return control.control(self.account, method, path, body)
                except ProblemError as problem:
                    return problem.response()
            return self._observed(method, path, query, headers, body)

    def control(self, method: str, name: str, body: bytes = b"") -> Response:
        """A control call in process."""
        return self.handle(method, f"{control.PREFIX}{name}", {}, {}, body)

    def fail(self, failure: Failure) -> None:
        """Script a failure in process."""
        with self._lock:
            self.account.faults.scripted.append(failure)

    @property
    def latency(self) -> float:
        """Seconds that the server waits before it answers."""
        return self.account.faults.latency.total_seconds()

    def _observed(
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> Response:
        status = 0
        try:
            response = self._answered(method, path, query, headers, body)
            status = response.status
        finally:
            recorded = Recorded(method, path, dict(query), body, status, _header(headers, "user-agent"))
            self.account.requests.append(recorded)
            del self.account.requests[:-KEPT_REQUESTS]
            for observer in self.observers:
                observer(recorded)
        return response

    def _answered(
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> Response:
        extra: dict[str, str] = {"x-request-id": f"req-{len(self.account.requests):08d}"}
        try:
            schema.check_size(body)  # before authentication
            self._authenticate(headers)
            if self.account.faults.quota is not None:
                extra |= self.account.faults.quota.count(self.account.now())
            response = self._effect(method, path, query, body)
        except ProblemError as problem:
            response = problem.response()
        return Response(response.status, {**extra, **response.headers}, response.body)

    def _effect(self, method: str, path: str, query: Mapping[str, str], body: bytes) -> Response:
        failure = self.account.faults.next(method, path, body)
        if failure is None:
            return dispatch(self.account, method, path, query, body)
        if failure.after:
            dispatch(self.account, method, path, query, body)
        return failure.response()

    def _authenticate(self, headers: Mapping[str, str]) -> None:
        scheme, _, key = _header(headers, "authorization").partition(" ")
        if scheme.lower() != "bearer" or not key:
            raise ProblemError(401, "missing bearer token")
        if self.account.keys is not None and key not in self.account.keys:
            raise ProblemError(401, "invalid bearer token")


def _header(headers: Mapping[str, str], wanted: str) -> str:
    return next((value for name, value in headers.items() if name.lower() == wanted), "")


__all__ = ["DroppedError", "Failure", "Observer", "Recorded", "Simulator"]
