"""What happens to a world's Pods and instances behind the control plane's back."""

from __future__ import annotations

from typing import Any

from nebula.domain.claim import Claim, Phase, TerminationReason
from nebula.domain.instance import Mark

from tests.support.world import CLUSTER, World, running


def running_pods(world: World, count: int) -> list[str]:
    """Create Pods and bring them to Running; returns their names."""
    names = [f"train-{number}" for number in range(count)]
    for name in names:
        world.create_pod(name)
    world.pump()
    world.tick()
    assert all(running(world.pod(name)) for name in names)
    return names


def force_delete(world: World, *names: str) -> None:
    """``kubectl delete pod --force``, and nobody hears of it."""
    for name in names:
        world.emulator.handle("DELETE", f"/api/v1/namespaces/default/pods/{name}", {"gracePeriodSeconds": "0"}, {}, b"")
        assert world.pod(name) is None


def label(world: World, name: str, key: str, value: str | None) -> None:
    """``kubectl label pod``; None takes the label away."""
    world.api.patch_pod("default", name, {"metadata": {"labels": {key: value}}})


def another_cluster(world: World, uid: str = "another-kube-system") -> None:
    """Another cluster answers under the name: its kube-system has another uid."""
    world.api.cluster_uid = lambda: uid  # type: ignore[method-assign]


def claims(world: World) -> list[Claim]:
    """Every live claim."""
    return list(world.claims.live(CLUSTER))


def all_ended(world: World, ids: list[str], why: TerminationReason) -> bool:
    """Whether each of these claims is Terminated for this reason."""
    found = [world.claims.get(claim_id) for claim_id in ids]
    return all(c is not None and (c.phase, c.termination_reason) == (Phase.TERMINATED, why) for c in found)


def remark(world: World, instance_id: str, **changes: Any) -> None:
    """Change an instance's mark in the provider's console; ``mark=None`` takes it away."""
    machine = next(m for m in world.simulated.console.living() if m.id == instance_id)
    if "mark" in changes:
        machine.mark = changes["mark"]
    else:
        assert machine.mark is not None
        machine.mark = Mark(**{**machine.mark.model_dump(), **changes})
    machine.changed()


def said(world: World, message: str) -> list[dict[str, Any]]:
    """The fields of every log line with this message."""
    return [fields for _, text, fields in world.telemetry.lines if text == message]
