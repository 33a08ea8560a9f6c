"""The worker's forwarder: watches the local cluster and puts its events on the local bus."""

from __future__ import annotations

from local.deployment import Endpoints


def forward_events(bus: str, endpoints: Endpoints) -> None:
    """Forward until the process ends."""
    from local.forwarder import run

    run(bus=bus, endpoints=endpoints)
