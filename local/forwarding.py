"""The worker's forwarder: the one that runs in clusters, pointed at the local API and the local bus."""

from __future__ import annotations

from nebula.events.eventbridge import EventBridgePublisher
from nebula.kubernetes.transport import StaticToken, Transport, new_session
from pydantic import SecretStr

from cluster.forwarder.service import Forwarder
from local.aws import client
from local.deployment import Endpoints


def forward_events(bus: str, endpoints: Endpoints) -> None:
    """Forward until the process ends. What could not be sent is sent later."""
    tokens = StaticToken(SecretStr(endpoints.cluster_token))
    transport = Transport(endpoints.kubernetes, tokens, new_session())
    publisher = EventBridgePublisher(client("events", endpoints), bus)
    Forwarder(endpoints.cluster, transport, publisher).run()
