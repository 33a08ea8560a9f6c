"""Serve the simulator: ``python -m local.runpod --port 4567 --key KEY``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from local.runpod.http_server import RunPodServer
from local.runpod.simulator import Simulator


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m local.runpod", description="RunPod's REST v2 API on loopback.")
    parser.add_argument("--port", type=int, default=4567)
    parser.add_argument("--key", action="append", help="an API key to accept (default: any)")
    options = parser.parse_args(arguments)
    simulator = Simulator()
    simulator.account.keys = frozenset(options.key) if options.key else None
    with RunPodServer(simulator, options.port) as server:
        print(f"RunPod simulator on {server.url}/v2, control on {server.url}/_control/", flush=True)
        try:
            server.serve_forever(poll_interval=0.1)
        except KeyboardInterrupt:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
