"""The main path through the workflows, without sockets: gated, placed, created, released, running, gone."""

from __future__ import annotations

from nebula.domain.claim import Phase

from tests.support.world import World, running


def test_a_gated_pod_runs_on_one_instance_and_leaves_nothing_behind() -> None:
    world = World()
    world.create_pod()
    world.pump()

    claim = world.claim()
    assert claim.phase is Phase.RELEASED, (claim.reason, claim.message, world.telemetry.lines)
    pod = world.pod()
    assert pod is not None
    assert pod["metadata"]["annotations"]["nebula.inftyai.com/instance-id"] == claim.instance_id
    assert not pod["spec"].get("schedulingGates")
    assert pod["spec"]["nodeName"] == "nebula-simulated"
    assert len(world.billed()) == 1
    assert world.committed() == claim.committed_per_hour > 0

    world.tick()
    assert running(world.pod())

    world.delete_pod()
    world.pump()
    world.tick()
    assert world.pod() is None
    assert world.billed() == []
    assert world.committed() == 0
    assert list(world.claims.live("test")) == []
