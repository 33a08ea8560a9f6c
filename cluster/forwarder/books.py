"""What the forwarder remembers of each object, and which events a new sight of it is worth. Pure.

A book holds a few words per object, never the object. Our own writes (status, conditions, annotations, the
release itself) come back as changes; they are worth nothing and are not announced.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from nebula.events.details import DetailType, NodePoolDetail, PodDetail
from nebula.events.envelope import Event
from nebula.kubernetes.pod import MalformedPodError, Pod

SOURCE = "nebula.kubernetes"


class Book(Protocol):
    """Remembers the objects of one kind."""

    def see(self, obj: Mapping[str, Any]) -> list[Event]:
        """Events that this version of an object is worth."""
        ...

    def gone(self, obj: Mapping[str, Any]) -> list[Event]:
        """Events for an object that a watch says is deleted."""
        ...

    def keep_only(self, uids: Collection[str]) -> list[Event]:
        """Events for the remembered objects that a complete list no longer has."""
        ...


class Stage(StrEnum):
    """How far a Pod is, as far as the product cares."""

    HELD = "held"  # others' gates are on it
    WAITING = "waiting"  # only our gate is left
    FREE = "free"  # released, or never gated
    LEAVING = "leaving"  # deletionTimestamp is set


class _Seen(NamedTuple):
    detail: PodDetail
    stage: Stage
    fields: bytes


class PodBook:
    """Opted-in Pods by uid."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._seen: dict[str, _Seen] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def see(self, obj: Mapping[str, Any]) -> list[Event]:
        """``Pod Gated`` when it begins to wait for us, ``Pod Changed`` when what we use of it changed,
        ``Pod Deleted`` when its deletion begins. After a restart that is repeated for what still waits or leaves.
        """
        now = self._read(obj)
        before = self._seen.get(now.detail.uid)
        self._seen[now.detail.uid] = now
        if now.stage is Stage.LEAVING:
            return [] if before and before.stage is Stage.LEAVING else [_event(DetailType.POD_DELETED, now)]
        if now.stage is Stage.WAITING and (before is None or before.stage is not Stage.WAITING):
            return [_event(DetailType.POD_GATED, now)]
        if before is not None and before.fields != now.fields:
            return [_event(DetailType.POD_CHANGED, now)]
        return []

    def gone(self, obj: Mapping[str, Any]) -> list[Event]:
        """``Pod Deleted`` once more: now the object is away, or it left the selector."""
        now = self._read(obj)
        return [_event(DetailType.POD_DELETED, self._seen.pop(now.detail.uid, now))]

    def keep_only(self, uids: Collection[str]) -> list[Event]:
        """``Pod Deleted`` for deletions that no watch told."""
        missed = [uid for uid in self._seen if uid not in uids]
        return [_event(DetailType.POD_DELETED, self._seen.pop(uid)) for uid in missed]

    def _read(self, obj: Mapping[str, Any]) -> _Seen:
        metadata = obj["metadata"]
        detail = PodDetail(
            cluster=self._cluster,
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=metadata["uid"],
            resource_version=metadata.get("resourceVersion", ""),
        )
        try:
            pod = Pod.from_object(obj)
            stage, fields = _stage(pod), bytes.fromhex(pod.fields_hash())
        except MalformedPodError as error:
            # Announced all the same: the function that reads it again says what is wrong with it.
            leaving = bool(metadata.get("deletionTimestamp"))
            stage, fields = Stage.LEAVING if leaving else Stage.WAITING, hashlib.sha256(str(error).encode()).digest()
        return _Seen(detail, stage, fields)


def _stage(pod: Pod) -> Stage:
    if pod.deletion_timestamp is not None:
        return Stage.LEAVING
    if not pod.gated:
        return Stage.FREE
    return Stage.HELD if pod.foreign_gates else Stage.WAITING


def _event(kind: DetailType, seen: _Seen) -> Event:
    return Event(source=SOURCE, detail_type=kind, detail=seen.detail)


class NodePoolBook:
    """NodePools by uid; ``metadata.generation`` moves with the spec and not with our writes of status."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._seen: dict[str, tuple[str, int]] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def see(self, obj: Mapping[str, Any]) -> list[Event]:
        """``NodePool Changed`` when it is new to us or its spec changed."""
        metadata = obj["metadata"]
        now = (metadata["name"], metadata.get("generation", 0))
        before = self._seen.get(metadata["uid"])
        self._seen[metadata["uid"]] = now
        return [] if before == now else [self._event(metadata["name"])]

    def gone(self, obj: Mapping[str, Any]) -> list[Event]:
        """``NodePool Changed``: Pods that name it now wait for another reason."""
        self._seen.pop(obj["metadata"]["uid"], None)
        return [self._event(obj["metadata"]["name"])]

    def keep_only(self, uids: Collection[str]) -> list[Event]:
        """``NodePool Changed`` for deletions that no watch told."""
        missed = [uid for uid in self._seen if uid not in uids]
        return [self._event(self._seen.pop(uid)[0]) for uid in missed]

    def _event(self, name: str) -> Event:
        detail = NodePoolDetail(cluster=self._cluster, name=name)
        return Event(source=SOURCE, detail_type=DetailType.NODEPOOL_CHANGED, detail=detail)
