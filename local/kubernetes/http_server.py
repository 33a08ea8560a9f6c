"""The emulator over HTTP on loopback."""

from __future__ import annotations

import ssl
from threading import Thread

from local.http_core import CoreServer
from local.kubernetes.server import Emulator, Response


class KubernetesServer(CoreServer):
    """Serves an emulator on a loopback port. With ``context`` it speaks TLS."""

    max_body = 3 * 1024 * 1024

    def __init__(self, emulator: Emulator, port: int = 0, *, context: ssl.SSLContext | None = None) -> None:
        self._scheme = "http" if context is None else "https"
        super().__init__(emulator, port)
        if context is not None:
            # The handshake is left to the connection's own thread: a client that stalls holds up nobody else.
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def too_large(self) -> Response:
        """See ``CoreServer``."""
        return Response(413, {"Content-Type": "text/plain"}, b"request too large")

    @property
    def url(self) -> str:
        """Where clients find it."""
        return super().url.replace("http", self._scheme, 1)

    def start(self) -> KubernetesServer:
        """Serve in a thread until ``stop``."""
        Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def stop(self) -> None:
        """Stop serving and close the socket; open watches end with their next line."""
        self.stopping = True
        self.shutdown()
        self.server_close()
