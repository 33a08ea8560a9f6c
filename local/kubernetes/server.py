"""The emulator: one method, ``handle``, from a request to an answer. No sockets, no threads of its own."""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any, NamedTuple

from nebula.clock import Clock, SystemClock

from local.kubernetes import discovery, objects, tables, watching
from local.kubernetes.access import Access, User
from local.kubernetes.controllers import Controllers
from local.kubernetes.errors import ApiError, Object, bad_request
from local.kubernetes.pod_defaults import Admission
from local.kubernetes.resources import NAMESPACES, PODS, Resource, Route, parse
from local.kubernetes.scheduler import Scheduler
from local.kubernetes.selectors import predicate
from local.kubernetes.storage import Record, Snapshot, Store

_JSON = {"Content-Type": "application/json"}
_SYSTEM_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Response(NamedTuple):
    """An answer. ``body`` is an iterator for a watch, which ends by itself at its time-out."""

    status: int
    headers: Mapping[str, str]
    body: bytes | Iterator[bytes]


Fault = Callable[[str, str], "Response | None"]


class Emulator:
    """A cluster. ``tokens`` maps bearer tokens to users (None: everybody is admin); ``access`` adds RBAC.

    ``faults`` are asked with (method, path) before each request; the first that answers is sent instead,
    and one that raises ``DroppedError`` cuts the connection. ``late_faults`` are asked after the request was
    carried out: its effect stands, its answer is lost or replaced. ``chance`` makes UIDs and generated names.
    """

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        tokens: Mapping[str, User] | None = None,
        rbac: bool = False,
        admission: Admission | None = None,
        bookmark_interval: float = 60.0,
        schedule: bool = True,
        chance: Random | None = None,
    ) -> None:
        self.clock = clock or SystemClock()
        self.store = Store(chance)
        self.calls: Counter[tuple[str, str]] = Counter()
        self.faults: list[Fault] = []
        self.late_faults: list[Fault] = []
        self._tokens = tokens
        self._access = Access(self.store) if rbac else None
        self.admission = admission or Admission()
        self._bookmark_interval = bookmark_interval
        self.scheduler = Scheduler(self.store, self.clock) if schedule else None
        self.controllers = Controllers(self.store, self.clock)
        for name in _SYSTEM_NAMESPACES:
            self.create(NAMESPACES, "", {"metadata": {"name": name}})

    def handle(
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes = b""
    ) -> Response:
        """Answer one request. Header names in any case."""
        for fault in list(self.faults):
            if (answer := fault(method, path)) is not None:
                return answer
        try:
            answer = self._answer(method, path, query, {key.lower(): value for key, value in headers.items()}, body)
        except ApiError as error:
            answer = _refusal(error)
        for fault in list(self.late_faults):
            if (replaced := fault(method, path)) is not None:
                return replaced
        return answer

    def create(self, resource: Resource, namespace: str, obj: Object) -> Object:
        """Create as the server itself would, and return a copy of what was stored."""
        with self.store.lock:
            record = objects.create(self.store, resource, namespace, obj, self.clock.now(), self.admission)
            self._settle()
        return _copy(resource, record)

    def read(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """A copy of one object, or None."""
        record = self.store.get(resource, (namespace, name))
        return None if record is None else _copy(resource, record)

    def _answer(
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> Response:
        if path in ("/healthz", "/readyz", "/livez"):
            return Response(200, {"Content-Type": "text/plain"}, b"ok")
        user = self._authenticate(headers)
        if (described := discovery.describe(path)) is not None:
            return Response(200, _JSON, json.dumps(described).encode())
        route = parse(path)
        verb = _verb(method, route, query)
        name = route.resource.plural + (f"/{route.subresource}" if route.subresource else "")
        self.calls[verb, name] += 1
        if self._access is not None:
            self._access.require(user, verb, route)
        if verb == "watch":
            watch = watching.read(route.resource, route.namespace, _admitted(route, query), query)
            lines = watching.lines(self.store, watch, self._bookmark_interval)
            if tables.wanted(headers):
                lines = (tables.told(route.resource, line, self.clock.now()) for line in lines)
            return Response(200, _JSON, lines)
        with self.store.lock:
            status, encoded = self._execute(verb, route, query, headers, body)
            self._settle()
        if verb in ("get", "list") and tables.wanted(headers):
            encoded = tables.table(route.resource, encoded, self.clock.now())
        return Response(status, _JSON, encoded)

    def _authenticate(self, headers: Mapping[str, str]) -> User:
        if self._tokens is None:
            return User("admin", ("system:masters",))
        scheme, _, token = headers.get("authorization", "").partition(" ")
        for known, user in self._tokens.items():
            if scheme == "Bearer" and secrets.compare_digest(known, token):
                return user
        raise ApiError(401, "Unauthorized")

    def _execute(
        self, verb: str, route: Route, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> tuple[int, bytes]:
        resource, now = route.resource, self.clock.now()
        if verb == "list":
            return 200, self._list(route, query)
        if verb == "get":
            return 200, _encoded(resource, objects.require(self.store, route))
        if verb == "delete":
            record, gone = objects.delete(self.store, route, query, _decoded(body) if body else None, now)
            if gone and resource is not PODS:
                return 200, _success(resource, record)
            return 200, _encoded(resource, record)
        if route.subresource == "binding":
            objects.bind(self.store, route, _object(body), now)
            return 201, _success(resource, objects.require(self.store, route))
        if verb == "create":
            created = objects.create(self.store, resource, route.namespace, _object(body), now, self.admission)
            return 201, _encoded(resource, created)
        if verb == "update":
            return 200, _encoded(resource, objects.replace(self.store, route, _object(body), self.admission))
        content_type = headers.get("content-type", "").partition(";")[0].strip()
        return 200, _encoded(resource, objects.patch(self.store, route, content_type, _decoded(body), self.admission))

    def _list(self, route: Route, query: Mapping[str, str]) -> bytes:
        limit = _limit(query)
        token = query.get("continue", "")
        if token:
            snapshot = self.store.resume(token)
        else:
            admits = _admitted(route, query)
            found = self.store.records(route.resource, route.namespace)
            snapshot = Snapshot(self.store.version, [record for record in found if admits(record.object)])
        page, rest = (snapshot.records[:limit], snapshot.records[limit:]) if limit else (snapshot.records, [])
        metadata: Object = {"resourceVersion": str(snapshot.version)}
        if rest:
            metadata |= {"continue": secrets.token_urlsafe(12), "remainingItemCount": len(rest)}
            self.store.keep(metadata["continue"], Snapshot(snapshot.version, rest))
        head = f'{{"kind":"{route.resource.kind}List","apiVersion":"{route.resource.api_version}","metadata":'
        # Items of built-in kinds carry no kind of their own in a list; those of custom resources do.
        own = b"" if route.resource.strategic else watching.prefix(route.resource)
        items = b",".join(own + record.encoded[1:] if own else record.encoded for record in page)
        return head.encode() + json.dumps(metadata).encode() + b',"items":[' + items + b"]}"

    def _settle(self) -> None:
        """Let the stand-ins of the control plane act on what was written: at once, not in a thread."""
        self.controllers.run()
        if self.scheduler is not None:
            self.scheduler.run()


def _verb(method: str, route: Route, query: Mapping[str, str]) -> str:
    if method == "GET":
        if query.get("watch") in ("true", "1"):
            return "watch"
        return "get" if route.name else "list"
    verb = _VERBS.get(method)
    collection_verb = verb == "create" and not route.subresource
    if verb is None or bool(route.name) == collection_verb or (collection_verb and _misplaced(route)):
        raise ApiError(405, "the server does not allow this method on the requested resource")
    return verb


def _misplaced(route: Route) -> bool:
    return route.resource.namespaced and not route.namespace


def _admitted(route: Route, query: Mapping[str, str]) -> Callable[[Object], bool]:
    return predicate(route.resource, query.get("labelSelector", ""), query.get("fieldSelector", ""))


def _limit(query: Mapping[str, str]) -> int:
    text = query.get("limit") or "0"
    if not text.isdigit():
        raise bad_request("invalid limit")
    return int(text)


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise bad_request("the body is no JSON") from None


def _object(body: bytes) -> Object:
    decoded = _decoded(body)
    if not isinstance(decoded, dict):
        raise bad_request("the body is no object")
    return decoded


def _encoded(resource: Resource, record: Record) -> bytes:
    return watching.prefix(resource) + record.encoded[1:]


def _copy(resource: Resource, record: Record) -> Object:
    copied: Object = json.loads(_encoded(resource, record))
    return copied


def _success(resource: Resource, record: Record) -> bytes:
    metadata = record.object["metadata"]
    details = {"name": metadata["name"], "kind": resource.plural, "uid": metadata["uid"]}
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    return json.dumps(status).encode()


def _refusal(error: ApiError) -> Response:
    if error.reason == "UnknownPath":
        return Response(404, {"Content-Type": "text/plain; charset=utf-8"}, b"404 page not found\n")
    return Response(error.code, _JSON, error.encoded())
