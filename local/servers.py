"""The servers: AWS (moto), RunPod and Kubernetes over HTTP on loopback, one process each.

Ports are free ones unless given; where they are and what opens them is written to the run's directory.
"""

from __future__ import annotations

import argparse
import os
import secrets
import socket
import sys
from collections.abc import Iterable, Sequence
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from local import run_files
from local.deployment import Endpoints
from local.run_files import ServersFile
from local.sockets import address, adopt, listen
from local.supervisor import Supervisor

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment


def run(directory: Path, ports: tuple[int, int, int], *, with_fixtures: bool, config: Path | None = None) -> int:
    """Serve until SIGTERM. ``ports`` are those of AWS, RunPod and Kubernetes; 0 takes a free one.

    With ``config`` the Kubernetes API listens with TLS too, and a kubeconfig for it is written there.
    """
    aws, runpod, kubernetes = (listen(port) for port in ports)
    endpoints = Endpoints(
        aws=address(aws),
        runpod=f"{address(runpod)}/v2",
        kubernetes=address(kubernetes),
        runpod_key=f"rpa_{secrets.token_hex(16)}",
        cluster_token=secrets.token_hex(16),
    )
    supervisor = Supervisor(
        {
            "aws": partial(_serve_aws, aws),
            "runpod": partial(_serve_runpod, runpod, endpoints.runpod_key),
            "kubernetes": partial(_serve_kubernetes, kubernetes, endpoints.cluster_token, with_fixtures, config),
        }
    )
    supervisor.stop_on_signals()
    supervisor.start()
    # Whoever connects from now on waits in the sockets' queues until the servers accept.
    run_files.write(directory, ServersFile(pid=os.getpid(), endpoints=endpoints))
    supervisor.wait()
    supervisor.stop()
    return 0


def _serve_aws(listener: socket.socket) -> None:
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    from local import answers, messages, transactions

    class Handler(MotoRequestHandler):
        """Answers at once: headers and body leave in two writes, and nobody reads a line per request."""

        disable_nagle_algorithm = True

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            pass

    for part in (transactions, answers, messages):
        part.install()
    dispatcher = DomainDispatcherApplication(create_backend_app)
    remember(dispatcher, "get_backend_for_host")
    remember(import_module("jsonpath_ng.ext"), "parse")
    application = one_at_a_time(dispatcher, "DynamoDB_")
    host, port = listener.getsockname()
    make_server(host, port, application, threaded=True, request_handler=Handler, fd=listener.fileno()).serve_forever()


def remember(owner: object, name: str) -> None:
    """Let a function of moto's keep its answers.

    It lists its own directory for each request to see whose call it is, and builds a grammar for each path of a rule's
    input transformer with each event: together a quarter of its processor time.
    """
    setattr(owner, name, cache(getattr(owner, name)))


def one_at_a_time(application: WSGIApplication, target: str) -> WSGIApplication:
    """The application with the calls to one service, by the beginning of ``X-Amz-Target``, one after the other.

    moto's DynamoDB checks conditions and writes in steps: what others wrote between them would be lost.
    """
    lock = Lock()

    def call(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if not str(environ.get("HTTP_X_AMZ_TARGET", "")).startswith(target):
            return application(environ, start_response)
        with lock:
            return application(environ, start_response)

    return call


def _serve_kubernetes(listener: socket.socket, token: str, with_fixtures: bool, config: Path | None) -> None:
    from local.kubernetes.access import MASTERS, User
    from local.kubernetes.http_server import KubernetesServer
    from local.kubernetes.server import Emulator
    from local.restore import fixtures, restore

    emulator = Emulator(tokens={token: User("admin", (MASTERS,))})
    if with_fixtures:
        restore(emulator, fixtures())
    if config is not None:
        from local import kubeconfig
        from local.certificates import for_loopback

        certificates = for_loopback()
        secured = KubernetesServer(emulator, context=kubeconfig.server_context(certificates)).start()
        kubeconfig.write(config, secured.url, certificates, token)
    adopt(KubernetesServer(emulator), listener).serve_forever(poll_interval=0.1)


def _serve_runpod(listener: socket.socket, key: str) -> None:
    from local.runpod import Simulator
    from local.runpod.http_server import RunPodServer

    simulator = Simulator()
    simulator.account.keys = frozenset({key})
    adopt(RunPodServer(simulator), listener).serve_forever(poll_interval=0.1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(prog="python -m local.servers", description="Serve what the functions call.")
    parser.add_argument("--dir", type=Path, default=run_files.DEFAULT_DIRECTORY, help="the run's directory")
    parser.add_argument("--aws-port", type=int, default=0)
    parser.add_argument("--runpod-port", type=int, default=0)
    parser.add_argument("--kubernetes-port", type=int, default=0)
    parser.add_argument("--fixtures", action="store_true", help="put the objects of local/fixtures into the cluster")
    parser.add_argument("--kubeconfig", type=Path, help="write a kubeconfig there, and listen with TLS for it")
    options = parser.parse_args(arguments)
    ports = (options.aws_port, options.runpod_port, options.kubernetes_port)
    return run(options.dir, ports, with_fixtures=options.fixtures, config=options.kubeconfig)


if __name__ == "__main__":
    sys.exit(main())
