"""Field reports X: defects read in similar tools' source, played here (docs/field-reports.md)."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any

import pytest
from nebula.domain.claim import AttemptOutcome, Phase, TerminationReason, claim_id_for
from nebula.providers.errors import RateLimitedError
from nebula.providers.simulated import Call, SimulatedProvider
from nebula.workflows.orphans import UNCLAIMED_AGE
from nebula.workflows.place import place_pod

from local.in_process import DroppedError
from local.kubernetes.resources import NAMESPACES, PODS
from tests.support.placements import released
from tests.support.runpod_guard import Guard
from tests.support.runpod_installation import RunPodInstallation, condition, put_secret, with_container
from tests.support.scenarios import GPU_POD, up
from tests.support.world import CLUSTER, World, pod_object, pool_object, running, until_true

PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQ==\n-----END PRIVATE KEY-----\n"


def test_x1_a_region_that_was_throttled_is_left_out_and_its_pods_are_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(pool=pool_object(providers=[{"name": "simulated", "regions": ["one", "two"]}]))
    provider = SimulatedProvider(world.clock, scopes=("one", "two"), per_region=True)
    world.simulated = provider
    world.providers._providers["simulated"] = provider
    provider.market.limit(1, region="one")
    up(world, "first")
    up(world, "second")
    assert [world.claim(name).attempts[-1].scope for name in ("first", "second")] == ["one", "two"]
    provider.break_listing("two")
    monkeypatch.setattr(provider, "get", lambda _: None)
    provider.console.delete(str(world.claim("first").instance_id))
    world.run(3)
    assert running(world.pod("second")), "its region was not listed: unknown"
    assert world.claim("second").phase is Phase.RELEASED
    assert world.claim("first").termination_reason is TerminationReason.INSTANCE_LOST
    assert world.billed() == [world.claim("second").instance_id]


def test_x2_a_pod_of_the_same_name_runs_its_own_image_and_environment() -> None:
    world = RunPodInstallation()
    for number in ("1", "2"):
        image = f"registry.example.com/train:{number}"
        up(world, **with_container(image=image, env=[{"name": "RUN", "value": number}]))
        world.delete_pod()
        world.pump()
        world.run(1)
    first, second = world.calls("POST", "/v2/pods")
    assert (second["image"], second["env"]["RUN"]) == ("registry.example.com/train:2", "2")
    assert first["name"] != second["name"]
    assert first["env"]["NEBULA_CLAIM"] != second["env"]["NEBULA_CLAIM"]


def test_x4_a_container_that_ended_is_seen_although_nobody_tells_its_exit_code() -> None:
    world = RunPodInstallation()
    made = up(world)
    world.account.pods[made].force("EXITED", world.clock.now())
    world.run(1)
    pod = world.pod()
    assert pod is not None
    assert pod["status"]["phase"] == "Failed"
    assert not running(pod)
    assert world.alive() == [], "the box is ended, not only reported"


def test_x4_a_pod_that_needs_an_exit_code_is_not_placed_where_none_is_told() -> None:
    world = RunPodInstallation()
    world.create_pod(restartPolicy="Never")
    world.pump()
    world.run(1)
    assert world.calls("POST", "/v2/pods") == []
    assert "exit_code_unsupported" in condition(world.pod())["message"]


def test_x5_a_throttled_call_is_no_quota_and_fails_no_pod() -> None:
    world = World()
    throttle = RateLimitedError("RequestLimitExceeded: Request limit exceeded.", retry_after=timedelta(seconds=30))
    world.simulated.script.fail(Call.PROVISION, throttle, times=3)
    world.create_pod()
    world.pump()
    claim = world.claim()
    assert (claim.phase, claim.reason, claim.exclusions) == (Phase.PLACED, "RateLimited", ())
    (block,) = world.blocks.active("simulated", world.clock.now())
    assert block.kind == "rate_limited"
    until_true(world, lambda: running(world.pod()), minutes=5)
    assert len({attempt.candidate.key for attempt in world.claim().attempts}) == 1


def test_x6_a_pod_whose_provider_was_unregistered_is_not_let_go_before_its_box_is_gone() -> None:
    world = World()
    made = up(world)
    key = world.providers.keys.pop("simulated")
    world.delete_pod()
    world.pump()
    world.run(5)
    pod = world.pod()
    assert pod is not None, "the Pod's object stands for what is billed"
    assert pod["metadata"]["deletionTimestamp"]
    assert world.billed() == [made]
    world.providers.keys["simulated"] = key
    until_true(world, lambda: world.pod() is None, minutes=3)
    assert world.billed() == []


def test_x7_namespace_and_name_are_never_joined_into_a_key() -> None:
    world = World()
    claims = []
    for namespace, name in (("a-b", "c"), ("a", "b-c")):
        world.emulator.create(NAMESPACES, "", {"metadata": {"name": namespace}})
        pod = world.emulator.create(PODS, namespace, pod_object(name))
        uid = pod["metadata"]["uid"]
        place_pod(world.services("placement"), CLUSTER, namespace, name, uid)
        claims.append(claim_id_for(CLUSTER, uid))
    world.pump()
    world.tick()
    assert len(set(claims)) == 2
    machines = world.simulated.console.owned()
    assert len({machine.name for machine in machines}) == 2
    assert [machine.mark.claim_id for machine in machines if machine.mark] == claims


def test_x8_a_pod_that_cannot_be_annotated_is_not_created_again_after_thirty_seconds() -> None:
    world = RunPodInstallation()

    def cut(method: str, path: str) -> None:
        if method == "PATCH" and path.endswith("/pods/train"):
            raise DroppedError

    world.emulator.faults.append(cut)
    world.create_pod()
    world.pump()
    for _ in range(6):
        world.tick(after=timedelta(seconds=30))
        assert len(world.calls("POST", "/v2/pods")) == 1
    world.emulator.faults.remove(cut)
    until_true(world, lambda: running(world.pod()), minutes=3)
    assert world.alive() == [world.claim().instance_id]
    assert len(world.calls("POST", "/v2/pods")) == 1


def test_x9_the_end_is_a_delete_and_no_disk_is_billed_on() -> None:
    world = RunPodInstallation()
    made = up(world)
    world.delete_pod()
    world.pump()
    world.run(1)
    (end,) = [one for one in world.account.requests if one.method in ("DELETE", "POST") and made in one.path]
    assert (end.method, end.path) == ("DELETE", f"/v2/pods/{made}")
    assert world.account.pods[made].terminated_at is not None


def test_x10_every_field_of_the_pod_reaches_the_body(runpod_guard: Guard) -> None:
    runpod_guard.opened |= {"8080/http"}
    ingress = {"mode": "FirstPort", "authentication": "Application"}
    world = RunPodInstallation(providers=[{"name": "runpod", "regions": ["EU-RO-1"]}], ingress=ingress)
    wanted = {"nvidia.com/gpu": "4", "cpu": "16", "memory": "64Gi", "ephemeral-storage": "80G"}
    world.create_pod(
        **with_container(
            image="registry.example.com/serve@sha256:" + "a" * 64,
            command=["python", "-m"],
            args=["serve", "--model", "x y"],
            env=[{"name": "MODE", "value": "fast"}],
            ports=[{"containerPort": 8080}],
            resources={"limits": wanted, "requests": wanted},
        )
    )
    world.pump()
    body = world.created()
    assert {key: body[key] for key in ("image", "entrypoint", "cmd", "disk", "ports", "dataCenterIds", "cloud")} == {
        "image": "registry.example.com/serve@sha256:" + "a" * 64,
        "entrypoint": ["python", "-m"],
        "cmd": ["serve", "--model", "x y"],
        "disk": 80,
        "ports": ["8080/http"],
        "dataCenterIds": ["EU-RO-1"],
        "cloud": "SECURE",
    }
    assert {key: body["gpu"][key] for key in ("count", "minVcpuCountPerGpu", "minRamPerGpu")} == {
        "count": 4,
        "minVcpuCountPerGpu": 4,
        "minRamPerGpu": 16,
    }
    assert body["env"]["MODE"] == "fast"


def _entries() -> list[dict[str, Any]]:
    secret = {"secretKeyRef": {"name": "tls", "key": "tls.key"}}
    return [
        {"name": "KEY", "valueFrom": secret},
        {"name": "INLINE", "value": PEM},
        {"name": "X", "value": ""},
        {"name": "MY_PORT_NAME", "value": "eth0"},
        {"name": "SERVICE_PORT_8080_TCP", "value": "1"},
    ]


def test_x11_newlines_empty_values_and_names_with_port_arrive_as_they_are() -> None:
    world = RunPodInstallation()
    put_secret(world, "tls", {"type": "Opaque", "data": {"tls.key": base64.b64encode(PEM.encode()).decode()}})
    world.create_pod(**with_container(env=_entries()))
    world.pump()
    env = world.created()["env"]
    assert {name: env[name] for name in env if not name.startswith("NEBULA_")} == {
        "KEY": PEM,
        "INLINE": PEM,
        "X": "",
        "MY_PORT_NAME": "eth0",
        "SERVICE_PORT_8080_TCP": "1",
    }


def test_x11_a_secret_that_cannot_be_read_is_waited_for_and_nothing_is_bought() -> None:
    world = RunPodInstallation()
    world.create_pod(**with_container(env=_entries()))
    world.pump()
    world.run(2)
    assert world.calls("POST", "/v2/pods") == []
    assert "tls" in released(world)["message"]
    put_secret(world, "tls", {"type": "Opaque", "data": {"tls.key": base64.b64encode(PEM.encode()).decode()}})
    until_true(world, lambda: running(world.pod()), minutes=5)
    assert world.created()["env"]["KEY"] == PEM


def test_x12_the_account_s_other_pods_are_neither_imported_nor_ended() -> None:
    world = RunPodInstallation()
    theirs = [world.account.create_pod({**GPU_POD, "name": f"their-{number}", "env": {}}).id for number in range(5)]
    ours = up(world)
    world.clock.advance(UNCLAIMED_AGE)
    world.run(3)
    assert sorted(world.alive()) == sorted([*theirs, ours])
    assert [pod["metadata"]["name"] for pod in world.api.list_pods()] == ["train"]
    assert [claim.pod_name for claim in world.claims.live(CLUSTER)] == ["train"]
    assert not [one for one in world.account.requests if any(their in one.path for their in theirs)]


def test_x3_exit_nought_of_a_job_s_pod_is_success() -> None:
    world = World()
    made = up(world, restartPolicy="Never")
    world.simulated.console.exit(made, 0)
    world.run(2)
    pod = world.pod()
    assert pod is not None
    assert pod["status"]["phase"] == "Succeeded"
    assert world.billed() == []
    assert world.claim().attempts[-1].outcome is AttemptOutcome.GONE
