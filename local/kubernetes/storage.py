"""The object store: one counter of versions, immutable records, a history that watches read."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from random import Random, SystemRandom
from threading import Condition, RLock
from typing import NamedTuple

from local.kubernetes.errors import ApiError, Object
from local.kubernetes.resources import Resource

Key = tuple[str, str]
Listener = Callable[["Change"], None]
_HISTORY = 20_000
_SNAPSHOTS = 32


class Record:
    """One version of one object. ``object`` must never be changed in place: answers and watches share it."""

    __slots__ = ("_encoded", "object", "version")

    def __init__(self, obj: Object, version: int) -> None:
        self.object = obj
        self.version = version
        self._encoded: bytes | None = None

    @property
    def encoded(self) -> bytes:
        """The object as JSON, encoded once for every reader."""
        if self._encoded is None:
            self._encoded = json.dumps(self.object, separators=(",", ":")).encode()
        return self._encoded


class Change(NamedTuple):
    """One write: ``type`` is ADDED, MODIFIED or DELETED."""

    version: int
    type: str
    resource: Resource
    key: Key
    record: Record
    previous: Record | None


class Snapshot(NamedTuple):
    """What a list of several pages reads: the same version on each."""

    version: int
    records: list[Record]


def expired(message: str) -> ApiError:
    """410: older than the history."""
    return ApiError(410, message, reason="Expired")


class Store:
    """Objects by kind and key. Every method that writes must be called with ``lock`` held.

    ``chance`` makes the UIDs and generated names of new objects: nobody can foretell them unless a seed is given.
    """

    def __init__(self, chance: Random | None = None) -> None:
        self.chance = chance or SystemRandom()
        self.lock = RLock()
        self._changed: dict[Resource, Condition] = {}
        self.version = 1000
        self.listeners: list[Listener] = []
        self._objects: dict[Resource, dict[Key, Record]] = {}
        self._history: dict[Resource, list[Change]] = {}
        self._oldest: dict[Resource, int] = {}
        self._floor = 0
        self._snapshots: OrderedDict[str, Snapshot] = OrderedDict()

    def changed(self, resource: Resource) -> Condition:
        """Told of each write of a kind: whoever watches another one sleeps on. ``lock`` must be held."""
        return self._changed.setdefault(resource, Condition(self.lock))

    def get(self, resource: Resource, key: Key) -> Record | None:
        """One object, or None."""
        return self._objects.get(resource, {}).get(key)

    def records(self, resource: Resource, namespace: str = "") -> list[Record]:
        """All objects of a kind in key order, of one namespace or of all."""
        objects = self._objects.get(resource, {})
        keys = sorted(key for key in objects if not namespace or key[0] == namespace)
        return [objects[key] for key in keys]

    def write(self, resource: Resource, key: Key, obj: Object) -> Record:
        """Store a new version of ``obj`` (its metadata is replaced by a copy that holds the version)."""
        self.version += 1
        obj["metadata"] = {**obj["metadata"], "resourceVersion": str(self.version)}
        record = Record(obj, self.version)
        objects = self._objects.setdefault(resource, {})
        previous = objects.get(key)
        objects[key] = record
        self._tell(Change(self.version, "MODIFIED" if previous else "ADDED", resource, key, record, previous))
        return record

    def remove(self, resource: Resource, key: Key, last: Object) -> Record:
        """Forget an object; watches see ``last`` with the version of the deletion."""
        self.version += 1
        previous = self._objects[resource].pop(key)
        last = {**last, "metadata": {**last["metadata"], "resourceVersion": str(self.version)}}
        record = Record(last, self.version)
        self._tell(Change(self.version, "DELETED", resource, key, record, previous))
        return record

    def changes(self, resource: Resource, after: int) -> list[Change]:
        """Writes later than ``after``, oldest first; 410 when some of them are forgotten."""
        if not max(self._floor, self._oldest.get(resource, 0)) <= after <= self.version:
            # A version of the future is one of an earlier life of this server.
            raise expired(f"too old resource version: {after} ({self.version})")
        history = self._history.get(resource, [])
        return history[bisect_right(history, after, key=lambda change: change.version) :]

    def compact(self) -> None:
        """Forget the history and every list under way, as etcd's compaction does."""
        with self.lock:
            self._floor = self.version
            self._history.clear()
            self._snapshots.clear()
            for condition in self._changed.values():
                condition.notify_all()

    def keep(self, token: str, snapshot: Snapshot) -> None:
        """Keep what the next page of a list reads; the oldest are forgotten."""
        self._snapshots[token] = snapshot
        while len(self._snapshots) > _SNAPSHOTS:
            self._snapshots.popitem(last=False)

    def resume(self, token: str) -> Snapshot:
        """What a continue token stands for; 410 when it is forgotten."""
        snapshot = self._snapshots.get(token)
        if snapshot is None:
            raise expired("The provided continue parameter is too old to display a consistent list result.")
        return snapshot

    def _tell(self, change: Change) -> None:
        history = self._history.setdefault(change.resource, [])
        history.append(change)
        if len(history) > 2 * _HISTORY:
            self._oldest[change.resource] = history[_HISTORY - 1].version
            del history[:_HISTORY]
        for listener in self.listeners:
            listener(change)
        self.changed(change.resource).notify_all()
