"""The worker: deploys the template into the servers' moto and runs the functions until it is stopped.

It may be killed at any moment, SIGKILL included; a new one finds the deployed stack and goes on. Each
function has a process of its own, with the environment that the template gives it.
"""

from __future__ import annotations

import argparse
import logging
import os
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from local import lambda_api, run_files, secrets
from local.aws import client
from local.deploy import deploy
from local.deployment import Deployment, Endpoints
from local.forwarding import forward_events
from local.permissions import enforce
from local.queues import Poller
from local.run_files import ServersFile, WorkerFile
from local.runtime import Runtime, take_environment
from local.scaling import DEFAULT_DIVISOR, Scale
from local.schedules import Scheduler
from local.sockets import address, listen
from local.supervisor import Supervisor


@dataclass(frozen=True)
class Options:
    """How to run: the run's directory, the time divisor, and template parameters that differ from the default."""

    directory: Path
    divisor: float
    parameters: dict[str, str]


def run(options: Options) -> int:
    """Deploy, then run every function until SIGTERM. 1 when a function's process ended by itself."""
    servers = run_files.read(options.directory, ServersFile)
    if servers is None:
        print("worker: no servers here; start them with python -m local.servers", file=sys.stderr)
        return 2
    endpoints = servers.endpoints
    run_files.remove(options.directory, WorkerFile)
    deployment = deploy(
        client("cloudformation", endpoints), scale=Scale(options.divisor), parameters=options.parameters
    )
    secrets.fill(client("ssm", endpoints), deployment.functions[0].environment, endpoints)
    listeners = {function.name: listen() for function in deployment.functions}
    front = listen()
    supervisor = Supervisor(_children(deployment, endpoints, listeners, front))
    supervisor.stop_on_signals()
    supervisor.start()
    run_files.write(
        options.directory,
        WorkerFile(pid=os.getpid(), lambda_url=address(front), deployment=deployment),
    )
    supervisor.wait()
    supervisor.stop()
    return 0


def _children(
    deployment: Deployment, endpoints: Endpoints, listeners: dict[str, socket.socket], front: socket.socket
) -> dict[str, Callable[[], None]]:
    urls = {name: address(listener) for name, listener in listeners.items()}
    children: dict[str, Callable[[], None]] = {}
    for function in deployment.functions:
        runtime = Runtime(function)
        # Imported here, once: the functions share most of their modules, and nothing is read at import.
        runtime.warm()
        children[function.name] = partial(_run_function, runtime, endpoints, listeners[function.name])
    children["front"] = partial(_run_front, front, urls)
    children["forwarder"] = partial(forward_events, deployment.outputs["EventBusName"], endpoints)
    return children


def _run_function(runtime: Runtime, endpoints: Endpoints, listener: socket.socket) -> None:
    function = runtime.function
    take_environment(function, endpoints)
    enforce(function.name, function.permissions, endpoints.region)
    for mapping in function.mappings:
        Poller(client("sqs", endpoints), mapping, runtime, endpoints.region).start()
    for schedule in function.schedules:
        Scheduler(schedule, runtime).start()
    lambda_api.LambdaApi(listener, lambda_api.direct(runtime)).serve_forever()


def _run_front(listener: socket.socket, urls: dict[str, str]) -> None:
    lambda_api.LambdaApi(listener, lambda_api.forward(urls)).serve_forever()


def parse(arguments: Sequence[str] | None = None) -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m local.worker", description="Run the functions locally.")
    parser.add_argument("--dir", type=Path, default=run_files.DEFAULT_DIRECTORY, help="the run's directory")
    parser.add_argument("--divisor", type=float, default=DEFAULT_DIVISOR, help="divides every timer of the template")
    parser.add_argument(
        "--parameter", action="append", default=[], metavar="NAME=VALUE", help="a template parameter; repeatable"
    )
    options = parser.parse_args(arguments)
    parameters = dict(item.split("=", 1) for item in options.parameter)
    return Options(options.dir, options.divisor, parameters)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    sys.exit(run(parse()))
