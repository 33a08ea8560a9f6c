"""An HTTP proxy on loopback that can hold one call: before it reaches the server, or its answer on the way back.

It stands between the product and a server of the local stack, so that a test can stop time at one exact place.
"""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Matches = Callable[[str, str, bytes], bool]

_HOP_HEADERS = {"connection", "transfer-encoding", "keep-alive", "host"}
_HOLD_SECONDS = 60.0


@dataclass
class Hold:
    """One place to stop: ``reached`` is set when a matching call is there; it stays until ``released`` is set."""

    matches: Matches
    before: bool
    reached: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def stop(self) -> None:
        """Wait here."""
        self.reached.set()
        self.released.wait(_HOLD_SECONDS)


class HoldingProxy(ThreadingHTTPServer):
    """Forwards everything to ``target``; context manager."""

    daemon_threads = True

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target, _, self.prefix = target.removeprefix("http://").partition("/")
        self.hold: Hold | None = None
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def url(self) -> str:
        """What the product is given instead of the server's URL."""
        base = f"http://127.0.0.1:{self.server_address[1]}"
        return f"{base}/{self.prefix}" if self.prefix else base

    def hold_next(self, matches: Matches, *, before: bool) -> Hold:
        """Hold the next matching call, and none after it."""
        self.hold = Hold(matches, before)
        return self.hold

    def take(self, method: str, path: str, body: bytes) -> Hold | None:
        """The hold that this call meets, if any; used up by it."""
        hold = self.hold
        if hold is None or not hold.matches(method, path, body):
            return None
        self.hold = None
        return hold

    def __exit__(self, *_: Any) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body leave in two writes; without this the second waits for an acknowledgement.
    disable_nagle_algorithm = True
    server: HoldingProxy

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        hold = self.server.take(self.command, self.path, body)
        if hold is not None and hold.before:
            hold.stop()
            self.close_connection = True
            return
        upstream = http.client.HTTPConnection(self.server.target, timeout=330)
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_HEADERS}
            upstream.request(self.command, self.path, body, headers)
            answer = upstream.getresponse()
            if hold is not None:
                hold.stop()
            self._relay(answer)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            upstream.close()

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def _relay(self, answer: http.client.HTTPResponse) -> None:
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _HOP_HEADERS:
                self.send_header(name, value)
        chunked = answer.getheader("Content-Length") is None and answer.status != 204
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while piece := answer.read1(65536):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
        if chunked:
            self.wfile.write(b"0\r\n\r\n")
