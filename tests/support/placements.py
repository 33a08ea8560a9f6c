"""Driving the placement workflow in a ``World``, and reading what it left."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from nebula.domain.claim import Claim, Phase
from nebula.workflows.place import place_pod

from tests.support.placing import block
from tests.support.world import CLUSTER, World


def place(world: World, name: str = "train") -> Claim | None:
    pod = world.pod(name)
    assert pod is not None
    return place_pod(world.services("placement"), CLUSTER, "default", name, pod["metadata"]["uid"])


def placed_only(world: World) -> None:
    """Create a Pod and place it. What placement asks for is on the bus, and nobody has heard of it yet."""
    world.create_pod()
    world.collect()
    world.deliver(world.queue.pop(0))
    assert world.claim().phase is Phase.PLACED


def released(world: World, name: str = "train") -> dict[str, Any]:
    pod = world.pod(name)
    assert pod is not None
    return next(c for c in pod["status"]["conditions"] if c["type"] == "nebula.inftyai.com/Released")


def events(world: World) -> list[tuple[str, int]]:
    _, _, body = world.emulator.handle("GET", "/api/v1/namespaces/default/events", {}, {}, b"")
    assert isinstance(body, bytes)
    return sorted((event["reason"], event["count"]) for event in json.loads(body)["items"])


def block_everything(world: World, seconds: int = 40) -> None:
    now = world.clock.now()
    world.blocks.put(block("simulated", created_at=now, expires_at=now + timedelta(seconds=seconds)))
