"""Watch streams: from a version on, through selectors, with bookmarks and 410."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from local.kubernetes.errors import ApiError, bad_request
from local.kubernetes.resources import Resource
from local.kubernetes.selectors import Predicate
from local.kubernetes.storage import Change, Record, Store

_MAX_SECONDS = 1800.0


class Watch(NamedTuple):
    """What a watcher asked for. ``after`` is None for "whatever is there now, then changes"."""

    resource: Resource
    namespace: str
    admits: Predicate
    after: int | None
    bookmarks: bool
    seconds: float


def read(resource: Resource, namespace: str, admits: Predicate, query: Mapping[str, str]) -> Watch:
    """Read a watch's query parameters."""
    version = query.get("resourceVersion", "")
    if version and not version.isdigit():
        raise bad_request("invalid resourceVersion")
    try:
        seconds = float(query.get("timeoutSeconds") or _MAX_SECONDS)
    except ValueError:
        raise bad_request("invalid timeoutSeconds") from None
    after = int(version) if version not in ("", "0") else None
    bookmarks = query.get("allowWatchBookmarks") in ("true", "1")
    return Watch(resource, namespace, admits, after, bookmarks, seconds)


def prefix(resource: Resource) -> bytes:
    """What a stored object lacks: its kind and apiVersion."""
    return f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}",'.encode()


def lines(store: Store, watch: Watch, bookmark_interval: float) -> Iterator[bytes]:
    """The stream, one JSON line per event. Ends at the watch's time-out, as real ones do."""
    head = prefix(watch.resource)
    deadline = time.monotonic() + watch.seconds
    next_bookmark = time.monotonic() + bookmark_interval if watch.bookmarks else math.inf
    with store.lock:
        present = [] if watch.after is not None else store.records(watch.resource, watch.namespace)
        position = store.version if watch.after is None else watch.after
    for record in present:
        if watch.admits(record.object):
            yield _line("ADDED", head, record)
    while True:
        try:
            changes, seen = _wait(store, watch, position, min(deadline, next_bookmark))
        except ApiError as error:
            yield b'{"type":"ERROR","object":' + error.encoded() + b"}\n"
            return
        for change in changes:
            if line := _event(watch, head, change):
                yield line
        position = seen
        now = time.monotonic()
        if watch.bookmarks and now >= min(next_bookmark, deadline):
            yield _bookmark(watch.resource, position)
            next_bookmark = now + bookmark_interval
        if now >= deadline:
            return


def _wait(store: Store, watch: Watch, position: int, until: float) -> tuple[list[Change], int]:
    """Changes after ``position`` and the version up to which they are complete; empty when ``until`` comes first."""
    with store.lock:
        while True:
            changes = store.changes(watch.resource, position)
            if changes:
                return changes, changes[-1].version
            position = store.version
            left = until - time.monotonic()
            if left <= 0:
                return [], position
            store.changed(watch.resource).wait(left)


def _event(watch: Watch, head: bytes, change: Change) -> bytes | None:
    if watch.namespace and change.key[0] != watch.namespace:
        return None
    before = change.previous is not None and watch.admits(change.previous.object)
    after = change.type != "DELETED" and watch.admits(change.record.object)
    if after:
        return _line("MODIFIED" if before else "ADDED", head, change.record)
    if not before:
        return None
    if change.type != "DELETED" and change.previous is not None:
        return _left(head, change.previous, change.version)
    return _line("DELETED", head, change.record)


def _left(head: bytes, previous: Record, version: int) -> bytes:
    """An object that left the selector: told as it was before, with the version of the change."""
    metadata = {**previous.object["metadata"], "resourceVersion": str(version)}
    return _line("DELETED", head, Record({**previous.object, "metadata": metadata}, version))


def _line(kind: str, head: bytes, record: Record) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + head + record.encoded[1:] + b"}\n"


def _bookmark(resource: Resource, version: int) -> bytes:
    metadata = {"resourceVersion": str(version), "creationTimestamp": None}
    body = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
    return json.dumps({"type": "BOOKMARK", "object": body}, separators=(",", ":")).encode() + b"\n"
