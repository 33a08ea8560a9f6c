"""The simulator over HTTP on loopback."""

from __future__ import annotations

import time

from local.http_core import CoreServer
from local.runpod.simulator import Simulator
from local.runpod.wire import ProblemError, Response


class RunPodServer(CoreServer):
    """Serves one simulator; its API is below ``/v2``."""

    max_body = 1024 * 1024

    def __init__(self, simulator: Simulator, port: int = 0) -> None:
        self.simulator = simulator
        super().__init__(simulator, port)

    def too_large(self) -> Response:
        """See ``CoreServer``."""
        return ProblemError(413, "request body exceeds 102400 bytes").response()

    def hold(self) -> None:
        """See ``CoreServer``."""
        time.sleep(self.simulator.latency)
