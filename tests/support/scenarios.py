"""Where many field reports begin."""

from __future__ import annotations

from typing import Any

from nebula.events.details import ClaimDetail
from nebula.events.envelope import Envelope
from nebula.workflows.provision import provision_claim

from tests.support.runpod import SXM
from tests.support.world import World, running

#: What somebody else's pod in the RunPod account is made from; ``env`` is to be added.
GPU_POD: dict[str, Any] = {"name": "n", "image": "x", "disk": 1, "gpu": {"id": SXM}}


def up(world: World, name: str = "train", **changes: Any) -> str:
    """A Pod that runs; its instance's id."""
    world.create_pod(name, **changes)
    world.pump()
    world.tick()
    assert running(world.pod(name))
    return str(world.claim(name).instance_id)


def provision_event(world: World, event: Envelope) -> str:
    """What provisioning does with a claim's event; the phase that the claim is left in."""
    claim = provision_claim(world.services("provisioning"), event.read(ClaimDetail).claim_id)
    return "none" if claim is None else str(claim.phase)
