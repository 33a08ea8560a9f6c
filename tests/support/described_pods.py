"""Four Pods that a person asks about with ``kubectl describe pod``, each from a run of the installation."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from nebula.events.details import DetailType
from nebula.providers.errors import NoCapacityError
from nebula.providers.simulated.script import Call

from local.kubernetes.resources import PODS
from tests.support.world import World, pod_object, pool_object


def _installation() -> World:
    """Spot first, then on demand."""
    return World(pool=pool_object(capacityTypes=["Spot", "OnDemand"]))


def _slowly(world: World) -> None:
    """Deliver what is on the bus, a second after another: Events of one second have no order."""
    while world.collect():
        world.clock.advance(timedelta(seconds=1))
        world.deliver(world.queue.pop(0))


def gated() -> World:
    """Nothing is to be had: a refusal in each tier, then a wait."""
    world = _installation()
    world.simulated.script.fail(Call.PROVISION, NoCapacityError("no H100 left in sim-1"), times=2)
    world.create_pod()
    _slowly(world)
    return world


def placed() -> World:
    """Refused once, then running on demand."""
    world = _installation()
    world.simulated.script.fail(Call.PROVISION, NoCapacityError("no H100 left in sim-1"), times=1)
    world.create_pod()
    _slowly(world)
    world.minute()
    return world


def failed() -> World:
    """A Pod of nobody's whose container ended with 3."""
    world = _installation()
    world.create_pod(restartPolicy="Never")
    world.pump()
    world.minute()
    world.simulated.console.exit(world.billed()[0], 3)
    world.run(2)
    return world


def preempted() -> World:
    """The provider took the Spot machine of a Job's Pod back."""
    world = _installation()
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "fine-tune", "uid": "job-1", "controller": True}
    pod = pod_object(restartPolicy="Never")
    pod["metadata"]["ownerReferences"] = [owner]
    world.announce(DetailType.POD_GATED, world.emulator.create(PODS, "default", pod))
    world.pump()
    world.minute()
    world.simulated.console.interrupt(world.billed()[0])
    world.run(4)
    return world


CASES: dict[str, Callable[[], World]] = {"gated": gated, "placed": placed, "failed": failed, "preempted": preempted}
