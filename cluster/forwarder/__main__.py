"""``python -m cluster.forwarder`` inside a cluster; everything it needs to know comes from the environment."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import boto3
from botocore.config import Config
from nebula.events.eventbridge import EventBridgePublisher
from nebula.kubernetes.transport import Transport, new_session

from cluster.forwarder.meters import serve
from cluster.forwarder.service import FileToken, Forwarder

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_CONFIG = Config(connect_timeout=5, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 3})


def build(environment: Mapping[str, str], account: Path = _ACCOUNT) -> Forwarder:
    """A forwarder for the cluster it runs in. KeyError names a variable that is missing.

    ``NEBULA_CLUSTER`` is the cluster's name in the installation, ``NEBULA_EVENT_BUS`` the bus's name or ARN.
    """
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment.get("KUBERNETES_SERVICE_PORT", "443")
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    session = new_session((account / "ca.crt").read_text(encoding="ascii"), pool_size=4)
    publisher = EventBridgePublisher(boto3.client("events", config=_CONFIG), environment["NEBULA_EVENT_BUS"])
    transport = Transport(server, FileToken(account / "token"), session)
    return Forwarder(environment["NEBULA_CLUSTER"], transport, publisher)


def main() -> int:
    """Run until SIGTERM."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    forwarder = build(os.environ)
    signal.signal(signal.SIGTERM, lambda *_: forwarder.stop.set())
    serve(forwarder.meters, int(os.environ.get("NEBULA_METRICS_PORT", "8080")))
    forwarder.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
