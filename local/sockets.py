"""Listening sockets on loopback that exist before the process that serves them."""

from __future__ import annotations

import socket
from socketserver import TCPServer
from typing import TypeVar

ServerT = TypeVar("ServerT", bound=TCPServer)


def listen(port: int = 0) -> socket.socket:
    """A listening socket on loopback; 0 takes a free port. ``SystemExit`` names one that is taken."""
    try:
        return socket.create_server(("127.0.0.1", port), backlog=128)
    except OSError as error:
        raise SystemExit(f"port {port} of this machine cannot be had: {error.strerror}") from None


def address(listener: socket.socket) -> str:
    """The URL of a listening socket."""
    host, port = listener.getsockname()
    return f"http://{host}:{port}"


def adopt(server: ServerT, listener: socket.socket) -> ServerT:
    """Let a server accept from ``listener`` instead of the socket it made itself."""
    server.socket.close()
    server.socket = listener
    server.server_address = listener.getsockname()
    return server
