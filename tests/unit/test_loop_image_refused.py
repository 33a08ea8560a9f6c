"""An image that a provider refuses: tried again slowly, and at once when the Pod or its pull Secret changes."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from typing import Any

import pytest
from nebula.domain.claim import AttemptOutcome, Phase
from nebula.kubernetes.pod import Pod
from nebula.providers.errors import ImagePullError, InvalidWorkloadError
from nebula.providers.simulated import Call
from nebula.workflows.image_wait import (
    FIRST_PAUSE,
    IMAGE_PULL,
    LONGEST_PAUSE,
    READ_PER_SWEEP,
    image_pause,
    pull_secrets_version,
    wake_image_waiters,
)
from nebula.workflows.views import ClusterView

from local.kubernetes.resources import SECRETS
from local.kubernetes.server import Response
from tests.support.claims import attempt, provisioned
from tests.support.mischief import claims
from tests.support.world import MINUTE, World, running

REFUSED = ImagePullError("400: registry unauthorized: could not pull image")
SECRET_PATH = "/api/v1/namespaces/default/secrets/login"


def _login(password: str) -> dict[str, Any]:
    entry = {"auths": {"registry.example.com": {"username": "u", "password": password}}}
    data = base64.b64encode(json.dumps(entry).encode()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "login"},
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": data},
    }


def _refused(times: int = 1, error: Exception = REFUSED) -> World:
    """A Pod with a pull Secret whose image is refused this often."""
    world = World()
    world.emulator.create(SECRETS, "default", _login("wrong"))
    world.simulated.script.fail(Call.PROVISION, error, times=times)
    world.create_pod(imagePullSecrets=[{"name": "login"}])
    world.pump()
    return world


def _shown(world: World) -> dict[str, Any]:
    conditions = (world.pod() or {})["status"]["conditions"]
    return next(c for c in conditions if c["type"].endswith("/Released"))


def _replace_secret(world: World, password: str = "right") -> None:
    world.emulator.handle("DELETE", SECRET_PATH, {}, {}, b"")
    world.emulator.create(SECRETS, "default", _login(password))


def test_the_pod_stays_gated_and_says_when_next() -> None:
    world = _refused()
    claim = claims(world)[0]
    assert (claim.phase, claim.reason) == (Phase.PENDING, IMAGE_PULL)
    assert claim.next_action_at is not None
    shown = _shown(world)
    assert shown["reason"] == IMAGE_PULL
    assert f"next try at {claim.next_action_at:%Y-%m-%dT%H:%MZ}" in shown["message"]
    assert "registry unauthorized" in shown["message"]


def test_a_registry_that_was_only_down_costs_a_few_minutes() -> None:
    world = _refused()
    world.run(int(FIRST_PAUSE / timedelta(minutes=1)) + 2)
    assert running(world.pod())


def test_it_is_not_asked_before_its_time() -> None:
    world = _refused(times=100)
    world.run(3)
    assert world.simulated.script.counts[Call.PROVISION] == 1


def test_each_refusal_in_a_row_doubles_the_wait_up_to_an_hour() -> None:
    refused = attempt(outcome=AttemptOutcome.REFUSED, detail=f"{IMAGE_PULL} from simulated: no")
    other = attempt(outcome=AttemptOutcome.REFUSED, detail="NoCapacity from simulated: none")
    waits = [image_pause(provisioned(attempts=(refused,) * count)) for count in range(1, 7)]
    assert waits == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE, 8 * FIRST_PAUSE, LONGEST_PAUSE, LONGEST_PAUSE]
    assert image_pause(provisioned(attempts=(refused, refused, other, refused))) == FIRST_PAUSE


def test_few_creates_are_sent_in_an_hour() -> None:
    world = _refused(times=100)
    world.run(60)
    assert world.simulated.script.counts[Call.PROVISION] == 4
    assert world.billed() == []


def test_a_replaced_pull_secret_wakes_it_within_two_sweeps() -> None:
    world = _refused()
    _replace_secret(world)
    world.run(2)
    assert running(world.pod())


def test_a_secret_that_did_not_change_wakes_nobody() -> None:
    world = _refused()
    before = claims(world)[0]
    world.run(2)
    assert claims(world)[0] == before


def test_a_changed_pod_is_tried_at_once_even_when_nobody_tells() -> None:
    world = _refused()
    body = {"spec": {"containers": [{"name": "main", "image": "registry.example.com/train:2"}]}}
    world.api.patch_pod("default", "train", body)
    world.run(2)
    assert running(world.pod())


def test_an_invalid_workload_stays_final() -> None:
    world = _refused(error=InvalidWorkloadError("no such port"))
    claim = claims(world)[0]
    assert (claim.reason, claim.next_action_at) == ("InvalidWorkload", None)
    world.run(30)
    assert world.simulated.script.counts[Call.PROVISION] == 1


def test_a_secret_that_may_not_be_read_any_more_stops_no_sweep() -> None:
    world = _refused(times=100)
    world.emulator.faults.append(lambda _method, path: Response(403, {}, b"{}") if path == SECRET_PATH else None)
    world.run(2)
    assert world.telemetry.total("Defects") == 0
    assert claims(world)[0].phase is Phase.PENDING


def _version(world: World) -> str:
    return pull_secrets_version(world.api, Pod.from_object(world.pod() or {}))


def test_the_version_of_the_secrets_changes_with_each_of_them() -> None:
    world = _refused(times=100)
    seen = [_version(world)]
    _replace_secret(world)
    seen.append(_version(world))
    world.emulator.handle("DELETE", SECRET_PATH, {}, {}, b"")
    seen.append(_version(world))
    world.emulator.faults.append(lambda _method, path: Response(403, {}, b"{}") if path == SECRET_PATH else None)
    seen.append(_version(world))
    assert len(set(seen)) == 4


def test_a_pod_without_pull_secrets_costs_no_read() -> None:
    world = World()
    world.create_pod()
    assert _version(world) == ""


def test_one_sweep_reads_a_bounded_number_of_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    world = _refused(times=1000)
    known = claims(world)[0]
    many = [known.model_copy(update={"claim_id": f"{number:032x}"}) for number in range(READ_PER_SWEEP + 10)]
    reads: list[str] = []
    real = world.api.get_secret

    def counted(namespace: str, name: str) -> Any:
        reads.append(name)
        return real(namespace, name)

    monkeypatch.setattr(world.api, "get_secret", counted)
    pod = Pod.from_object(world.pod() or {})
    view = ClusterView(world.api, many, {pod.uid: pod})
    assert wake_image_waiters(world.services("status_polling"), view, until=world.clock.now() + MINUTE) == 0
    assert len(reads) == READ_PER_SWEEP
