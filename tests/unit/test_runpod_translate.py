"""Pods from Pods: what each field of a workload becomes in the body of a create."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from nebula.domain.candidate import CapacityType, Shape
from nebula.domain.workload import Egress, EgressMode, PortProtocol, PublishedPort
from nebula.providers.errors import InvalidWorkloadError, RequestRefusedError, UnsupportedAcceleratorError
from nebula.providers.runpod import marks
from nebula.providers.runpod.translate import MAX_BODY_BYTES
from pydantic import SecretStr

from tests.support.runpod import CPU_ONLY, SXM, RunPodWorld, request
from tests.support.runpod_guard import Guard


def sent(**workload: Any) -> dict[str, Any]:
    """The body that RunPod gets."""
    world = RunPodWorld()
    world.provider.provision(request(**workload))
    (body,) = world.calls("POST", "/v2/pods")
    return body


def refused(error: type[Exception], **workload: Any) -> str:
    """The text of a refusal; nothing was asked of RunPod but its catalog."""
    world = RunPodWorld()
    with pytest.raises(error) as caught:
        world.provider.provision(request(**workload))
    assert world.count("POST") == 0
    return str(caught.value)


def gpu(cpu: str = "0", memory: str = "0", count: int = 1, disk: int | None = None) -> Shape:
    return Shape(
        accelerator="H100", accelerator_count=count, cpu=Decimal(cpu), memory_gib=Decimal(memory), disk_gb=disk
    )


def test_the_least_pod() -> None:
    assert sent() == {
        "name": "default-web-00000001",
        "image": "ghcr.io/acme/serve:1",
        "cloud": "SECURE",
        "disk": 20,
        "env": {"NEBULA_INSTALLATION": "test-installation", "NEBULA_CLAIM": f"{1:032x}", "NEBULA_ATTEMPT": "1"},
        "gpu": {"id": SXM, "count": 1},
    }


def test_the_digest_of_an_image_is_kept() -> None:
    image = "ghcr.io/acme/serve:1@sha256:" + "a" * 64
    assert sent(image=image)["image"] == image


@pytest.mark.parametrize(
    ("command", "args", "expected"),
    [
        (None, None, {}),
        (("python", "-m", "x"), None, {"entrypoint": ["python", "-m", "x"], "cmd": []}),
        (None, ("--port", "1"), {"cmd": ["--port", "1"]}),
        (("python",), ("a b", "$(X)", ""), {"entrypoint": ["python"], "cmd": ["a b", "$(X)", ""]}),
        ((), ("a",), {"cmd": ["a"]}),
        (("x",), (), {"entrypoint": ["x"], "cmd": []}),
        ((), (), {}),
    ],
)
def test_command_and_args_in_every_combination(
    command: tuple[str, ...] | None, args: tuple[str, ...] | None, expected: dict[str, list[str]]
) -> None:
    body = sent(command=command, args=args)
    assert {name: body[name] for name in ("entrypoint", "cmd") if name in body} == expected
    assert "args" not in body


def test_env_values_arrive_as_they_are() -> None:
    values = {"PEM": "-----BEGIN\nKEY-----\n", "EMPTY": "", "MY_PORT_NAME": "x", "QUOTED": "a\"b'c\\", "UNI": "é\u2028"}
    body = sent(env=values)
    assert {name: body["env"][name] for name in values} == values


@pytest.mark.parametrize("name", sorted(marks.RESERVED))
def test_a_pod_may_not_set_the_mark(name: str) -> None:
    text = refused(InvalidWorkloadError, env={name: "forged"})
    assert name in text
    assert "forged" not in text


def test_the_mark_is_written_last() -> None:
    body = sent(env={"ZZZ": "1"})
    assert list(body["env"])[-3:] == [marks.INSTALLATION, marks.CLAIM, marks.ATTEMPT]


def test_an_account_secret_cannot_be_read_through_a_placeholder() -> None:
    text = refused(InvalidWorkloadError, env={"STOLEN": "{{ RUNPOD_SECRET_prod }}"})
    assert "STOLEN" in text
    assert "prod" not in text


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (gpu(), {}),
        (gpu("8", "64"), {"minVcpuCountPerGpu": 8, "minRamPerGpu": 64}),
        (gpu("8", "64", 2), {"minVcpuCountPerGpu": 4, "minRamPerGpu": 32}),
        (gpu("9", "65", 2), {"minVcpuCountPerGpu": 5, "minRamPerGpu": 33}),
        (gpu("0.5", "0.25", 8), {"minVcpuCountPerGpu": 1, "minRamPerGpu": 1}),
        (gpu("1.5"), {"minVcpuCountPerGpu": 2}),
        (gpu("0", "10"), {"minRamPerGpu": 10}),
    ],
)
def test_cpu_and_memory_are_floors_per_gpu(shape: Shape, expected: dict[str, int]) -> None:
    body = sent(shape=shape)
    assert body["gpu"] == {"id": SXM, "count": shape.accelerator_count, **expected}
    assert "cpu" not in body


def test_the_candidates_larger_shape_is_what_is_rented() -> None:
    assert sent(shape=gpu("8"), place={"shape": gpu("8", count=4)})["gpu"] == {
        "id": SXM, "count": 4, "minVcpuCountPerGpu": 2,
    }  # fmt: skip


@pytest.mark.parametrize(("disk", "expected"), [(None, 20), (1, 1), (120, 120), (0, 1)])
def test_disk_is_always_sent(disk: int | None, expected: int) -> None:
    assert sent(shape=gpu(disk=disk))["disk"] == expected


def test_no_port_is_published_unless_it_was_opened() -> None:
    assert "ports" not in sent()


def test_exactly_the_opened_ports_are_published(runpod_guard: Guard) -> None:
    runpod_guard.opened |= {"8080/http", "9000/tcp"}
    ports = (PublishedPort(port=8080), PublishedPort(port=9000, protocol=PortProtocol.TCP), PublishedPort(port=8080))
    assert sent(ports=ports)["ports"] == ["8080/http", "9000/tcp"]


def test_data_centers_go_out_together_and_anywhere_sends_none() -> None:
    assert sent(place={"regions": ("EU-RO-1", "EU-SE-1")})["dataCenterIds"] == ["EU-RO-1", "EU-SE-1"]
    assert "dataCenterIds" not in sent()


def test_cloud_is_secure_unless_the_pool_says_community() -> None:
    assert sent(place={"parameters": {"cloud": "community"}})["cloud"] == "COMMUNITY"
    assert "cloud" in refused(RequestRefusedError, place={"parameters": {"cloud": "ALL"}})


def test_the_registry_credential_is_sent_and_null_never() -> None:
    world = RunPodWorld()
    made = world.provider.ensure_registry_credential("nebula-x-1", SecretStr("user"), SecretStr("word"))
    world.provider.provision(request(registry=made))
    assert world.calls("POST", "/v2/pods")[0]["registry"] == made
    assert "registry" not in sent()


def test_an_empty_credential_id_never_becomes_an_anonymous_pull() -> None:
    assert "anonymously" in refused(RequestRefusedError, registry="")


@pytest.mark.parametrize(
    ("workload", "word"),
    [
        ({"egress": Egress(mode=EgressMode.BLOCKED)}, "egress"),
        ({"egress": Egress(mode=EgressMode.ALLOWLIST, targets=("a.example",))}, "egress"),
        ({"working_dir": "/app"}, "workingDir"),
        ({"place": {"capacity_type": CapacityType.SPOT}}, "Spot"),
        ({"name": ""}, "name"),
        ({"name": "x" * 192}, "192"),
    ],
)
def test_what_cannot_be_expressed_is_refused_by_name(workload: dict[str, Any], word: str) -> None:
    assert word in refused(RequestRefusedError, **workload)


@pytest.mark.parametrize(
    ("cpu", "memory", "flavor", "vcpus"),
    [
        ("0", "0", "cpu3c", 2),
        ("2", "4", "cpu3c", 2),
        ("3", "4", "cpu3c", 4),
        ("2", "5", "cpu3c", 4),
        ("2", "5", "cpu3g", 2),
        ("4.5", "0", "cpu5c", 8),
        ("32", "0", "cpu3c", 32),
        ("2", "16", "cpu3m", 2),
    ],
)
def test_cpu_only_pods_take_a_power_of_two_that_holds_the_memory(
    cpu: str, memory: str, flavor: str, vcpus: int
) -> None:
    shape = Shape(cpu=Decimal(cpu), memory_gib=Decimal(memory))
    body = sent(shape=shape, types=(flavor,), place={"parameters": {"cloud": "COMMUNITY"}})
    assert body["cpu"] == {"id": flavor, "vcpuCount": vcpus}
    assert body["cloud"] == "SECURE"
    assert "gpu" not in body


@pytest.mark.parametrize(("cpu", "memory"), [("33", "0"), ("2", "65")])
def test_a_flavor_that_is_too_small_is_not_asked_for(cpu: str, memory: str) -> None:
    shape = Shape(cpu=Decimal(cpu), memory_gib=Decimal(memory))
    assert "cpu3c" in refused(UnsupportedAcceleratorError, shape=shape, types=("cpu3c",))


def test_a_flavor_that_is_not_sold_is_not_asked_for() -> None:
    assert "cpu9x" in refused(UnsupportedAcceleratorError, shape=CPU_ONLY, types=("cpu9x",))


def test_a_body_that_is_too_large_names_what_is_large_and_shows_nothing() -> None:
    text = refused(
        InvalidWorkloadError, env={"BIG": "s" * 60_000, "SMALL": "x"}, command=("run", "t" * 50_000), args=("u" * 9,)
    )
    assert f"RunPod takes {MAX_BODY_BYTES}" in text
    assert "env BIG (60000 bytes), command (50003 bytes)" in text
    assert "sss" not in text
    assert "ttt" not in text


def test_the_limit_counts_bytes_and_is_exact() -> None:
    size = len(json.dumps(sent(env={"BIG": ""}), ensure_ascii=False, separators=(",", ":")).encode())
    room = MAX_BODY_BYTES - size
    assert len(sent(env={"BIG": "x" * room})["env"]["BIG"]) == room
    refused(InvalidWorkloadError, env={"BIG": "x" * (room + 1)})
    refused(InvalidWorkloadError, env={"BIG": "é" * (room // 2 + 1)})
