"""Put together: two watchers and one sender, each in a thread of its own."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from threading import Event as Flag
from threading import Thread
from typing import Final

from nebula.clock import Clock, SystemClock
from nebula.events.publisher import Publisher
from nebula.kubernetes import names
from nebula.kubernetes.api import ClusterUnavailableError
from nebula.kubernetes.cached_token import CachedToken
from nebula.kubernetes.transport import Transport
from pydantic import SecretStr

from cluster.forwarder.books import NodePoolBook, PodBook
from cluster.forwarder.meters import Meters
from cluster.forwarder.outbox import Outbox
from cluster.forwarder.watcher import Pace, Watcher

PODS: Final = "/api/v1/pods"
NODE_POOLS: Final = f"/apis/{names.GROUP}/v1alpha1/nodepools"
_TOKEN_LIFETIME: Final = timedelta(minutes=1)
_STOP_SECONDS: Final = 10.0


class FileToken(CachedToken):
    """A token source over the ServiceAccount's file, which the kubelet replaces before it expires."""

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        super().__init__(clock or SystemClock(), _TOKEN_LIFETIME)
        self._path = path

    def fetch(self) -> SecretStr:
        """The file's content. ClusterUnavailableError when it cannot be read."""
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
