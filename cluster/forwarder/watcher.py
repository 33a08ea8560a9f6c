"""List, then watch, for ever: the loop that every informer has, without the cache.

A list is compared with what the book remembers, so whatever a broken watch did not tell is told then. 410 means
list again; any other failure means wait, longer each time, and list again.
"""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event as Flag
from typing import Any

from nebula.events.envelope import Event
from nebula.kubernetes.api import ClusterUnavailableError, KubernetesError
from nebula.kubernetes.transport import ExpiredError, Transport, fitting_page

from cluster.forwarder.books import Book
from cluster.forwarder.meters import Meters

logger = logging.getLogger(__name__)
PAGE = 500
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
_SHORT_WATCH = 1.0


@dataclass(frozen=True)
class Pace:
    """Seconds: how long one watch lasts, and how long it may be silent (bookmarks come once a minute)."""

    watch: float = 300.0
    silence: float = 90.0


class Watcher:
    """Follows one collection and hands events to ``announce``."""

    def __init__(
        self,
        name: str,
        transport: Transport,
        path: str,
        selector: str,
        book: Book,
        announce: Callable[[Sequence[Event]], None],
        meters: Meters,
        *,
        pace: Pace | None = None,
    ) -> None:
        self.name = name
        self._transport = transport
        self._path = path
        self._selected = {"labelSelector": selector} if selector else {}
        self._book = book
        self._announce = announce
        self._meters = meters
        self._pace = pace or Pace()

    def run(self, stop: Flag) -> None:
        """Follow until told to stop."""
        pause = _FIRST_PAUSE
        self._meters.alive(self.name)
        while not stop.is_set():
            started = time.monotonic()
            try:
                self._follow(stop)
            except ExpiredError:
                logger.info("%s: history expired, listing again", self.name)
            except KubernetesError as error:
                self._meters.count("watch_failures")
                logger.warning("%s: %s", self.name, error)
            if time.monotonic() - started > 2 * _LONGEST_PAUSE:
                pause = _FIRST_PAUSE
            stop.wait(pause * random.uniform(0.5, 1.0))  # noqa: S311 - spread, not secrecy
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _follow(self, stop: Flag) -> None:
        """List, and watch on from there: one watch after the other until told to stop. Raises what ends that."""
        version = self.list_all()
        while not stop.is_set():
            began = time.monotonic()
            version = self.watch(version, stop)
            if time.monotonic() - began < _SHORT_WATCH:
                stop.wait(_FIRST_PAUSE)

    def list_all(self) -> str:
        """Compare a complete list with the book; the version to watch from."""
        uids: set[str] = set()
        token, limit = "", PAGE
        version = ""
        while True:
            query = {**self._selected, "continue": token} if token else self._selected
            page, limit = fitting_page(self._transport, self._path, query, limit)
            items = page.get("items") or []
            for item in items:
                uids.add(item["metadata"]["uid"])
                self._announce(self._book.see(item))
            metadata = page.get("metadata") or {}
            version = version or metadata.get("resourceVersion") or ""
            token = metadata.get("continue") or ""
            if not token:
                break
        if not version:
            raise ClusterUnavailableError(f"GET {self._path}: a list without a resourceVersion")
        self._announce(self._book.keep_only(uids))
        self._meters.count("lists")
        self._meters.alive(self.name)
        return version

    def watch(self, version: str, stop: Flag) -> str:
        """Follow one watch to its end; the version to go on from. ``ExpiredError`` when there is none."""
        query = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(max(1, int(self._pace.watch))),
            **self._selected,
        }
        lines = self._transport.lines(self._path, query, seconds=self._pace.watch + 10, idle=self._pace.silence)
        for line in lines:
            self._meters.alive(self.name)
            version = self._take(line) or version
            if stop.is_set():
                break
        self._meters.alive(self.name)
        return version

    def _take(self, line: str) -> str:
        try:
            told: dict[str, Any] = json.loads(line)
            kind, obj = told["type"], told["object"]
            if kind == "ERROR":
                self._refused(obj)
            if kind in ("ADDED", "MODIFIED"):
                self._announce(self._book.see(obj))
            elif kind == "DELETED":
                self._announce(self._book.gone(obj))
            return str(obj["metadata"]["resourceVersion"])
        except (ValueError, KeyError, TypeError) as error:
            # A line cut short by the end of the stream, or one that is no event: list again.
            raise ClusterUnavailableError(f"{self._path}: unreadable event ({type(error).__name__})") from None

    def _refused(self, status: dict[str, Any]) -> None:
        if status.get("code") == 410:
            raise ExpiredError(f"{self._path}: expired")
        raise ClusterUnavailableError(f"{self._path}: the watch ended with {status.get('code')}")
