"""What a Pod says comes next: after a wait, and after a failure."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from nebula.kubernetes.owners import what_follows
from nebula.kubernetes.pod import Pod
from nebula.workflows.placing import shown

from tests.support.claims import pending
from tests.support.world import World, pod_object


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "next try when the Pod or its NodePool changes"),
        (0, "next try within 1 min"),
        (60, "next try within 1 min"),
        (61, "next try within 5 min"),
        (600, "next try within 10 min"),
        (3600, "next try at 20"),
    ],
)
def test_a_deferral_says_when_the_next_try_is_in_steps(seconds: int | None, words: str) -> None:
    found = pending()
    at = None if seconds is None else found.updated_at + timedelta(seconds=seconds)
    claim = found.model_copy(update={"reason": "blocked", "message": "nothing there", "next_action_at": at})
    assert shown(claim).startswith(f"blocked: nothing there; {words}")


def _owned(*owners: Any) -> Pod:
    pod = pod_object()
    pod["metadata"] |= {"namespace": "default", "uid": "u", "ownerReferences": list(owners)}
    return Pod.from_object(pod)


def test_a_failed_pod_names_who_tries_again() -> None:
    job = {"kind": "Job", "name": "fine-tune", "controller": True}
    replica_set = {"kind": "ReplicaSet", "name": "llm-1", "controller": True}
    bystander = {"kind": "Thing", "name": "x"}
    assert what_follows(_owned()) == "no controller owns the Pod, so nothing tries again"
    assert what_follows(_owned(bystander)) == what_follows(_owned())
    assert what_follows(_owned(bystander, job)) == "Job fine-tune decides whether there is another try"
    assert what_follows(_owned(replica_set)) == "ReplicaSet llm-1 replaces the Pod"


def test_a_pod_that_is_being_deleted_speaks_of_no_other_try() -> None:
    world = World()
    world.create_pod(restartPolicy="Never")
    world.pump()
    world.minute()
    seen: list[Any] = []

    def look(_method: str, _path: str) -> None:
        seen.append(world.pod())

    world.emulator.late_faults.append(look)
    world.simulated.console.exit(world.billed()[0], 3)
    world.delete_pod()
    world.run(2)
    assert world.pod() is None
    ends = {pod["status"].get("message") for pod in seen if pod and pod["status"]["phase"] == "Failed"}
    assert ends == {"exit code 3"}
