"""Put together: two watchers and one sender, each in a thread of its own."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Event as Flag
from threading import Lock, Thread
from typing import Final

from nebula.events.publisher import Publisher
from nebula.kubernetes import names
from nebula.kubernetes.api import ClusterUnavailableError
from nebula.kubernetes.transport import Transport
from pydantic import SecretStr

from cluster.forwarder.books import NodePoolBook, PodBook
from cluster.forwarder.meters import Meters
from cluster.forwarder.outbox import Outbox
from cluster.forwarder.watcher import Pace, Watcher

PODS: Final = "/api/v1/pods"
NODE_POOLS: Final = f"/apis/{names.GROUP}/v1alpha1/nodepools"
_TOKEN_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 10.0


class FileToken:
    """A token source over the ServiceAccount's file, which the kubelet replaces before it expires."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._read: tuple[float, SecretStr] | None = None

    def token(self) -> SecretStr:
        """The file's content, read again once a minute. ClusterUnavailableError when it cannot be read."""
        with self._lock:
            now = time.monotonic()
            if self._read is None or now - self._read[0] > _TOKEN_SECONDS:
                self._read = (now, self._load())
            return self._read[1]

    def renew(self) -> bool:
        """Read the file again after a 401."""
        with self._lock:
            self._read = None
        return True

    def _load(self) -> SecretStr:
        try:
            return SecretStr(self._path.read_text(encoding="ascii").strip())
        except (OSError, ValueError) as error:
            raise ClusterUnavailableError(f"the token file cannot be read: {type(error).__name__}") from None


class Forwarder:
    """Follows one cluster. ``meters`` shows what it does; ``stop`` ends it after a last send."""

    def __init__(
        self,
        cluster: str,
        transport: Transport,
        publisher: Publisher,
        *,
        pace: Pace | None = None,
        linger: float = 0.05,
    ) -> None:
        self.meters = Meters()
        self.stop = Flag()
        pods, pools = PodBook(cluster), NodePoolBook(cluster)
        self._outbox = Outbox(publisher, self.meters.count, linger=linger)
        put = self._outbox.put
        self._watchers = (
            Watcher("pods", transport, PODS, names.ENABLED_SELECTOR, pods, put, self.meters, pace=pace),
            Watcher("nodepools", transport, NODE_POOLS, "", pools, put, self.meters, pace=pace),
        )
        self.meters.gauge("events_waiting", lambda: len(self._outbox))
        self.meters.gauge("lag_seconds", self._outbox.lag)
        self.meters.gauge("objects", lambda: len(pods) + len(pools))

    def run(self) -> None:
        """Run until ``stop`` is set or a thread dies; RuntimeError then, so that the container restarts."""
        threads = [
            Thread(target=watcher.run, args=(self.stop,), name=watcher.name, daemon=True) for watcher in self._watchers
        ]
        threads.append(Thread(target=self._outbox.run, args=(self.stop,), name="outbox", daemon=True))
        for thread in threads:
            thread.start()
        while not self.stop.wait(0.5):
            if not all(thread.is_alive() for thread in threads):
                self.stop.set()
                raise RuntimeError("a thread of the forwarder ended")
        threads[-1].join(_STOP_SECONDS)
