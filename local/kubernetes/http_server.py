"""The emulator over HTTP on loopback."""

from __future__ import annotations

import socket
import ssl
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from local.in_process import DroppedError
from local.kubernetes.server import Emulator, Response

_MAX_BODY = 3 * 1024 * 1024


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body leave in two writes; without this the second waits for an acknowledgement.
    disable_nagle_algorithm = True
    server: KubernetesServer

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: requests hold tokens and Secrets."""

    def _serve(self) -> None:
        length = self.headers.get("Content-Length") or "0"
        if not length.isdigit() or int(length) > _MAX_BODY:
            self.close_connection = True
            self._send(Response(413, {"Content-Type": "text/plain"}, b"request too large"))
            return
        body = self.rfile.read(int(length))
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        try:
            answer = self.server.emulator.handle(self.command, url.path, query, dict(self.headers), body)
        except DroppedError:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        try:
            self._send(answer)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _send(self, answer: Response) -> None:
        if isinstance(answer.body, bytes):
            self.send_response_only(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)
            return
        self._stream(answer, answer.body)

    def _stream(self, answer: Response, lines: Iterator[bytes]) -> None:
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for line in lines:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
            if self.server.stopping:
                break
        self.wfile.write(b"0\r\n\r\n")


class KubernetesServer(ThreadingHTTPServer):
    """Serves an emulator on a loopback port; ``port`` 0 takes a free one. With ``context`` it speaks TLS."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self, emulator: Emulator, port: int = 0, host: str = "127.0.0.1", *, context: ssl.SSLContext | None = None
    ) -> None:
        self.emulator = emulator
        self.stopping = False
        self._scheme = "http" if context is None else "https"
        super().__init__((host, port), _Handler)
        if context is not None:
            # The handshake is left to the connection's own thread: a client that stalls holds up nobody else.
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"{self._scheme}://{self.server_address[0]!s}:{self.server_address[1]}"

    def start(self) -> KubernetesServer:
        """Serve in a thread until ``stop``."""
        Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away, or does not trust the certificate, is no fault of the server's."""
        if not isinstance(sys.exception(), ssl.SSLError | ConnectionError):
            super().handle_error(request, client_address)

    def stop(self) -> None:
        """Stop serving and close the socket; open watches end with their next line."""
        self.stopping = True
        self.shutdown()
        self.server_close()
