"""The real forwarder as a process of its own, on a cluster and a bus over loopback HTTP.

``python -m tests.support.forwarder_process CLUSTER_URL BUS_URL``
"""

from __future__ import annotations

import logging
import sys

import boto3
from nebula.events.eventbridge import EventBridgePublisher
from nebula.kubernetes.transport import Transport, new_session

from cluster.forwarder.service import Forwarder


def main() -> None:
    logging.basicConfig(level=logging.WARNING)
    server, bus = sys.argv[1:]
    publisher = EventBridgePublisher(boto3.client("events", endpoint_url=bus), "bus")
    Forwarder("test", Transport(server, None, new_session()), publisher).run()


if __name__ == "__main__":
    main()
