"""The simulator over HTTP on loopback."""

from __future__ import annotations

import socket
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from local.in_process import DroppedError
from local.runpod.simulator import Simulator
from local.runpod.wire import ProblemError, Response

_MAX_BODY = 1024 * 1024


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body leave in two writes; without this the second waits for an acknowledgement.
    disable_nagle_algorithm = True
    server: RunPodServer

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815  the names are http.server's

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: requests hold keys and environments."""

    def _serve(self) -> None:
        length = self.headers.get("Content-Length") or "0"
        if not length.isdigit() or int(length) > _MAX_BODY:
            self.close_connection = True
            self._send(ProblemError(413, "request body exceeds 102400 bytes").response())
            return
        body = self.rfile.read(int(length))
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        time.sleep(self.server.simulator.latency)
        try:
            answer = self.server.simulator.handle(self.command, url.path, query, dict(self.headers), body)
        except DroppedError:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self._send(answer)

    def _send(self, answer: Response) -> None:
        try:
            self.send_response_only(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if answer.status != 204:
                self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True


class RunPodServer(ThreadingHTTPServer):
    """Serves one simulator; ``port`` 0 takes a free one."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, simulator: Simulator, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.simulator = simulator

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of callers that hang up; anything else is a fault of the simulator."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        """The base URL, without ``/v2``."""
        host, port = self.server_address[:2]
        return f"http://{host if isinstance(host, str) else host.decode()}:{port}"
