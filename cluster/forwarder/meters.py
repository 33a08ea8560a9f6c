"""Counters and their Prometheus text, and the small HTTP server that shows them."""

from __future__ import annotations

import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

_HELP = {
    "events_sent": "Events that the bus accepted.",
    "events_failed": "Entries that the bus refused or calls to it that failed; each is tried again.",
    "lists": "Complete lists: at start, after 410 and after a failure.",
    "watch_failures": "Lists and watches that failed.",
    "events_waiting": "Events not yet accepted by the bus.",
    "lag_seconds": "Age of the oldest event not yet accepted by the bus.",
    "objects": "Objects remembered.",
}
_GAUGES = frozenset({"events_waiting", "lag_seconds", "objects"})
#: A watcher that heard nothing for so long, bookmarks included, is stuck (seconds).
SILENCE = 600.0


class Meters:
    """Thread-safe counters, gauges read when asked, and the last sign of life of each watcher."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = Lock()
        self._counts: dict[str, float] = {name: 0 for name in _HELP if name not in _GAUGES}
        self._gauges: dict[str, Callable[[], float]] = {}
        self._heard: dict[str, float] = {}

    def count(self, name: str, by: float = 1) -> None:
        """Add to a counter."""
        with self._lock:
            self._counts[name] += by

    def value(self, name: str) -> float:
        """A counter's value."""
        with self._lock:
            return self._counts[name]

    def gauge(self, name: str, read: Callable[[], float]) -> None:
        """Show what ``read`` returns at each look."""
        self._gauges[name] = read

    def alive(self, watcher: str) -> None:
        """A watcher heard from its API server."""
        with self._lock:
            self._heard[watcher] = self._monotonic()

    def healthy(self) -> bool:
        """Whether no watcher was silent for ``SILENCE``."""
        now = self._monotonic()
        with self._lock:
            return all(now - heard < SILENCE for heard in self._heard.values())

    def text(self) -> str:
        """Prometheus text format."""
        with self._lock:
            values = dict(self._counts)
        values |= {name: read() for name, read in self._gauges.items()}
        lines = []
        for name in sorted(values):
            full = f"nebula_forwarder_{name}" + ("" if name in _GAUGES else "_total")
            kind = "gauge" if name in _GAUGES else "counter"
            lines += [f"# HELP {full} {_HELP[name]}", f"# TYPE {full} {kind}", f"{full} {values[name]:g}"]
        return "\n".join(lines) + "\n"


def serve(meters: Meters, port: int, host: str = "") -> ThreadingHTTPServer:
    """Serve ``/metrics`` and ``/healthz`` in a thread; ``port`` 0 takes a free one."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            if self.path == "/metrics":
                status, body = 200, meters.text()
            elif self.path == "/healthz":
                status, body = (200, "ok\n") if meters.healthy() else (503, "a watch is silent\n")
            else:
                status, body = 404, "not found\n"
            self.send_response_only(status)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Probes are not news."""

    server = ThreadingHTTPServer((host, port), Handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, name="meters", daemon=True).start()
    return server
