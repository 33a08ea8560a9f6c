"""A simulator's core over HTTP on loopback."""

from __future__ import annotations

import socket
import ssl
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlsplit

from local.in_process import Answer, Core, DroppedError


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body leave in two writes; without this the second waits for an acknowledgement.
    disable_nagle_algorithm = True
    server: CoreServer

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815  the names are http.server's

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: requests hold tokens, keys and Secrets."""

    def _serve(self) -> None:
        try:
            self._send(self._answer())
        except DroppedError:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _answer(self) -> Answer:
        length = self.headers.get("Content-Length") or "0"
        if not length.isdigit() or int(length) > self.server.max_body:
            self.close_connection = True
            return self.server.too_large()
        body = self.rfile.read(int(length))
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        self.server.hold()
        return self.server.core.handle(self.command, url.path, query, dict(self.headers), body)

    def _send(self, answer: Answer) -> None:
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if isinstance(answer.body, bytes):
            self._whole(answer.status, answer.body)
        else:
            self._stream(answer.body)

    def _whole(self, status: int, body: bytes) -> None:
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, lines: Iterator[bytes]) -> None:
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for line in lines:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
            if self.server.stopping:
                break
        self.wfile.write(b"0\r\n\r\n")


class CoreServer(ABC, ThreadingHTTPServer):
    """Serves a core in a thread for each connection; ``port`` 0 takes a free one."""

    daemon_threads = True
    request_queue_size = 128
    #: Bytes of a request's body that are read; what is larger is answered with ``too_large``.
    max_body: ClassVar[int]

    def __init__(self, core: Core, port: int = 0) -> None:
        self.core = core
        self.stopping = False
        super().__init__(("127.0.0.1", port), _Handler)

    @abstractmethod
    def too_large(self) -> Answer:
        """What the real API answers to a body that it does not read."""

    def hold(self) -> None:
        """Wait as long as the real API's answer takes."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up, or does not trust the certificate, is no fault of the server's."""
        if not isinstance(sys.exception(), ssl.SSLError | ConnectionError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        """Where clients find it, without a path."""
        return f"http://{self.server_address[0]!s}:{self.server_address[1]}"
