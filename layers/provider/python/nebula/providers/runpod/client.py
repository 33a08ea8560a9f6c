"""RunPod's REST v2 routes that pods, registry credentials, the catalog and logs need.

Gives back decoded objects; raises the errors of ``providers/errors.py`` and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from pydantic import SecretStr

from nebula.clock import Clock
from nebula.http import Answer, AnswerTooLargeError, HttpClient, TransportError
from nebula.observability import Telemetry
from nebula.providers.errors import CredentialInUseError, ProviderError, ProviderUnavailableError, RateLimitedError
from nebula.providers.runpod.errors import Route, classify
from nebula.providers.runpod.logs import read_events
from nebula.providers.runpod.paging import Listing, collect
from nebula.providers.runpod.wire import Problem, decode, rate_windows, read_problem

DEFAULT_BASE_URL = "https://api.runpod.io"
PAGE_LIMITS = (200, 20, 2)
"""Pods per page: smaller when a page outgrows the bound of an answer (each Pod carries its whole env)."""

LIST_TIME = timedelta(seconds=20)
"""One listing in all, its pages and single reads together. The status loop has 60 s for all that it does: without a
bound, slow pages would cost every claim of every provider each of its looks."""

_WARN_USED_PERCENT = 80.0
_LOG_SECONDS = 15.0
_LOG_IDLE_SECONDS = 5.0

Object = dict[str, Any]


class RunPodClient:
    """One account's API. ``api_key`` is sent as bearer and appears nowhere else."""

    def __init__(
        self,
        api_key: SecretStr,
        http: HttpClient,
        clock: Clock,
        telemetry: Telemetry,
        *,
        base_url: str = DEFAULT_BASE_URL,
    ) -> None:
        self._key = api_key
        self._http = http
        self._clock = clock
        self._telemetry = telemetry
        self._base = base_url.rstrip("/")

    def create_pod(self, body: bytes, *, secrets: Iterable[SecretStr], seconds: float) -> Object:
        """``POST /v2/pods``, sent once; the Pod object with a non-empty ``id``.

        ``secrets`` are taken out of error texts. Any doubt about the outcome raises
        ``ProviderUnavailableError``: the pod may exist.
        """
        answer = self._send("POST", "/v2/pods", body=body, seconds=seconds)
        if not 200 <= answer.status < 300:
            raise self._error(answer, Route.CREATE_POD, secrets)
        return self._object(answer, "a created pod", needs_id=True)

    def get_pod(self, pod_id: str, *, until: datetime | None = None) -> Object | None:
        """``GET /v2/pods/{id}``; None when RunPod itself says that there is no such pod."""
        answer = self._send("GET", f"/v2/pods/{_segment(pod_id)}", seconds=self._left(until))
        if answer.status == 200:
            return self._object(answer, "a pod", needs_id=True)
        self._absent(answer)
        return None

    def list_pods(self, until: datetime) -> Listing:
        """``GET /v2/pods``, every page that comes before ``until``.

        Raises when not even the first page could be read.
        """
        for limit in PAGE_LIMITS[:-1]:
            try:
                return self._pages("/v2/pods", "pods", {"limit": str(limit)}, until)
            except AnswerTooLargeError:
                continue
        return self._last_resort(until)

    def delete_pod(self, pod_id: str) -> None:
        """``DELETE /v2/pods/{id}``: terminates. A pod that RunPod does not know is success."""
        answer = self._send("DELETE", f"/v2/pods/{_segment(pod_id)}")
        if not 200 <= answer.status < 300:
            self._absent(answer)

    def pod_logs(self, pod_id: str, tail: int) -> Iterator[str]:
        """``GET /v2/pods/{id}/logs``: the last ``tail`` lines, at most 5000, and what follows within the bounds."""
        try:
            answer, lines = self._http.lines(
                f"{self._base}/v2/pods/{_segment(pod_id)}/logs",
                headers=self._headers() | {"Accept": "text/event-stream"},
                params={"tail": str(min(max(tail, 0), 5000))},
                seconds=_LOG_SECONDS,
                idle=_LOG_IDLE_SECONDS,
            )
        except TransportError as error:
            raise ProviderUnavailableError(str(error), code="transport") from None
        if answer.status != 200:
            raise self._error(answer)
        return read_events(lines)

    def list_registries(self) -> Listing:
        """``GET /v2/registries``, every page if there are pages (unknown; no limit is sent)."""
        try:
            return self._pages("/v2/registries", "registries", {}, self._clock.now() + LIST_TIME)
        except AnswerTooLargeError as error:
            raise ProviderUnavailableError(str(error), code="too_large") from None

    def create_registry(self, name: str, username: SecretStr, password: SecretStr) -> Object:
        """``POST /v2/registries``, sent once; the ``{id, name}`` object with a non-empty ``id``."""
        content = {"name": name, "username": username.get_secret_value(), "password": password.get_secret_value()}
        answer = self._send("POST", "/v2/registries", body=json.dumps(content).encode())
        if not 200 <= answer.status < 300:
            raise self._error(answer, Route.CREATE_REGISTRY, (username, password))
        return self._object(answer, "a created registry credential", needs_id=True)

    def delete_registry(self, registry_id: str) -> None:
        """``DELETE /v2/registries/{id}``; absent is success. Raises ``CredentialInUseError`` on 400 and 409.

        The OpenAPI document gives 400 the one meaning "in use by a pod"; its literal text is unknown.
        """
        answer = self._send("DELETE", f"/v2/registries/{_segment(registry_id)}")
        if 200 <= answer.status < 300:
            return
        problem = read_problem(answer)
        if answer.status in (400, 409) and problem.is_object:
            raise CredentialInUseError(f"registry credential {registry_id} is in use", code=str(answer.status))
        self._absent(answer, problem)

    def gpu_types(self, cloud: str) -> list[Object]:
        """``GET /v2/catalog/gpus`` with the pod stock of one cloud."""
        params = {"include": "AVAILABILITY", "product": "POD", "cloud": cloud}
        return self._catalog("/v2/catalog/gpus", "gpus", params)

    def cpu_types(self) -> list[Object]:
        """``GET /v2/catalog/cpus`` with pod stock."""
        return self._catalog("/v2/catalog/cpus", "cpus", {"include": "AVAILABILITY", "product": "POD"})

    def _catalog(self, path: str, member: str, params: Mapping[str, str]) -> list[Object]:
        answer = self._send("GET", path, params=params)
        if answer.status != 200:
            raise self._error(answer)
        rows = self._object(answer, "a catalog").get(member)
        if not isinstance(rows, list):
            raise ProviderUnavailableError(f"GET {path}: no list of {member}", code="200")
        return [row for row in rows if isinstance(row, dict)]

    def _last_resort(self, until: datetime) -> Listing:
        try:
            return self._pages("/v2/pods", "pods", {"limit": str(PAGE_LIMITS[-1])}, until)
        except AnswerTooLargeError as error:
            raise ProviderUnavailableError(str(error), code="too_large") from None

    def _pages(self, path: str, member: str, params: Mapping[str, str], until: datetime) -> Listing:
        began_at = self._clock.now()

        def page(cursor: str | None) -> Object:
            query = dict(params) | ({"cursor": cursor} if cursor else {})
            answer = self._send("GET", path, params=query, seconds=self._left(until), raise_too_large=True)
            if answer.status != 200:
                raise self._error(answer)
            return self._object(answer, f"a list of {member}")

        return collect(page, member, began_at, need_ids=member == "pods")

    def _left(self, until: datetime | None) -> float | None:
        """Seconds for one call of a listing that ends at ``until``; raises when there are none."""
        if until is None:
            return None
        left = (until - self._clock.now()).total_seconds()
        if left <= 0:
            raise ProviderUnavailableError(f"not listed within {LIST_TIME.total_seconds():.0f} s", code="time")
        return min(left, self._http.seconds)

    def _absent(self, answer: Answer, problem: Problem | None = None) -> None:
        """Return for a 404 that is RunPod's own; raise for everything else, a stranger's 404 too."""
        problem = problem or read_problem(answer)
        if answer.status == 404 and problem.structured:
            return
        raise self._error(answer)

    def _error(self, answer: Answer, route: Route = Route.OTHER, secrets: Iterable[SecretStr] = ()) -> ProviderError:
        error = classify(answer, route=route, now=self._clock.now(), secrets=(self._key, *secrets))
        if isinstance(error, RateLimitedError):
            self._telemetry.count("ProviderThrottled", provider="runpod")
        return error

    def _object(self, answer: Answer, what: str, *, needs_id: bool = False) -> Object:
        try:
            content = decode(answer.body)
        except ValueError:
            content = None
        if not isinstance(content, dict):
            raise ProviderUnavailableError(f"{answer.status} without {what}", code=str(answer.status))
        identity = content.get("id")
        if needs_id and not (isinstance(identity, str) and identity):
            raise ProviderUnavailableError(f"{answer.status} with {what} that has no id", code=str(answer.status))
        return content

    def _send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        seconds: float | None = None,
        raise_too_large: bool = False,
    ) -> Answer:
        headers = self._headers() | ({"Content-Type": "application/json"} if body is not None else {})
        try:
            answer = self._http.send(
                method, f"{self._base}{path}", headers=headers, params=params, body=body, seconds=seconds
            )
        except AnswerTooLargeError as error:
            if raise_too_large:
                raise
            raise ProviderUnavailableError(str(error), code="too_large") from None
        except TransportError as error:
            raise ProviderUnavailableError(str(error), code="transport") from None
        self._note_rate(answer)
        return answer

    def _note_rate(self, answer: Answer) -> None:
        """Tell how much of the tightest quota is used, once that is worth a metric."""
        used = [window.used_percent for window in rate_windows(answer.headers)]
        tightest = max((percent for percent in used if percent is not None), default=0.0)
        if tightest >= _WARN_USED_PERCENT:
            self._telemetry.count("ProviderRateLimitUsed", tightest, unit="Percent", provider="runpod")

    def _headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self._key.get_secret_value()}",
            "Accept": "application/json",
            "User-Agent": "nebula-serverless",
        }


def _segment(identity: str) -> str:
    """An id as one path segment. An empty or dotted one would address something else: no call is made."""
    if identity.strip(".") == "":
        raise ProviderUnavailableError("no usable id to call RunPod with", code="id")
    return quote(identity, safe="")
