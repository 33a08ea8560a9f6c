"""Field reports, section Y: odd names and values (Y7), the limits of bodies, events and rows (Y8), clocks (Y12)."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from nebula.clock import ManualClock
from nebula.domain.claim import Claim, Phase
from nebula.providers.runpod.translate import MAX_BODY_BYTES
from nebula.providers.simulated import Call
from nebula.stores.dynamo_claims import DynamoClaimStore
from nebula.stores.dynamo_items import to_item
from nebula.stores.memory_claims import MemoryClaimStore
from nebula.workflows.provision import provision_claim

from local.kubernetes.resources import CONFIG_MAPS
from tests.support.handlers import batch, failed, handler
from tests.support.runpod_installation import RunPodInstallation, condition, put_secret, with_container
from tests.support.world import START, World, running, until_true

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Object = dict[str, Any]
CANARY = "canary-5b1e"
PEM = "-----BEGIN KEY-----\nabc\n-----END KEY-----\n"


def _secret(world: World, **data: str | bytes) -> None:
    raw = {key: value if isinstance(value, bytes) else value.encode() for key, value in data.items()}
    encoded = {key: base64.b64encode(value).decode() for key, value in raw.items()}
    put_secret(world, "odd", {"type": "Opaque", "data": encoded})


def _waits(world: World, reason: str) -> str:
    """Why a Pod is not bought for; its provider saw no create."""
    world.pump()
    world.run(1)
    assert world.claim().reason == reason
    assert world.claim().attempts == ()
    return str(condition(world.pod())["message"])


def test_y7_keys_that_are_no_identifiers_reach_the_container_as_a_kubelet_passes_them_on() -> None:
    world = RunPodInstallation()
    names = {"1BAD": "a", "my.key": "b", "with-dash": "c", "MY_PORT_NAME": "d", ".dotted": "e"}
    world.emulator.create(CONFIG_MAPS, "default", {"metadata": {"name": "odd"}, "data": names})
    world.create_pod(**with_container(envFrom=[{"configMapRef": {"name": "odd"}}]))
    world.pump()
    env = world.created()["env"]
    assert {name: env[name] for name in names} == names


@pytest.mark.parametrize(
    ("prefix", "shown"), [("A=", "'A=KEY'"), ("Ä_", "'Ä_KEY'"), ("NEBULA_", "NEBULA_KEY is reserved")]
)
def test_y7_a_name_that_no_kubelet_passes_on_is_refused_by_name(prefix: str, shown: str) -> None:
    world = RunPodInstallation()
    world.emulator.create(CONFIG_MAPS, "default", {"metadata": {"name": "odd"}, "data": {"KEY": CANARY}})
    world.create_pod(**with_container(envFrom=[{"prefix": prefix, "configMapRef": {"name": "odd"}}]))
    message = _waits(world, "ReservedEnvironment" if prefix == "NEBULA_" else "InvalidEnvironment")
    assert shown in message
    assert CANARY not in message


@pytest.mark.parametrize(
    "value",
    ['say "hi"', "it's", PEM, "a\tb\r\n", "$HOME", "$(NAME)", "$$", "", " spaces ", "ünïcödé 🚀", "\\n", "{{ x }}"],
)
def test_y7_quotes_newlines_and_dollars_of_a_secret_arrive_as_they_are(value: str) -> None:
    world = RunPodInstallation()
    _secret(world, VALUE=value)
    entries = [{"name": "NAME", "value": "n"}]
    world.create_pod(**with_container(env=entries, envFrom=[{"secretRef": {"name": "odd"}}]))
    world.pump()
    assert world.created()["env"]["VALUE"] == value


@pytest.mark.parametrize(
    ("value", "reason"),
    [(f"{CANARY}\0".encode(), "InvalidEnvironment"), (CANARY.encode() + b"\xff\xfe", "UndecodableSecret")],
    ids=["NUL", "not UTF-8"],
)
@pytest.mark.parametrize("how", ["envFrom", "valueFrom"])
def test_y7_bytes_that_cannot_be_sent_are_refused_by_key_and_never_shown(how: str, value: bytes, reason: str) -> None:
    world = RunPodInstallation()
    _secret(world, VALUE=value)
    by_key = {"env": [{"name": "VALUE", "valueFrom": {"secretKeyRef": {"name": "odd", "key": "VALUE"}}}]}
    fields: Object = by_key if how == "valueFrom" else {"envFrom": [{"secretRef": {"name": "odd"}}]}
    world.create_pod(**with_container(**fields))
    message = _waits(world, reason)
    assert "VALUE" in message
    said = json.dumps(
        [world.telemetry.lines, [e.model_dump_json() for e in world.publisher.events], world.pod()], default=str
    )
    assert CANARY not in said
    assert base64.b64encode(value).decode() not in said


@pytest.mark.parametrize("field", ["command", "args"])
def test_y7_a_nul_in_command_or_args_is_refused_by_field(field: str) -> None:
    world = RunPodInstallation()
    world.create_pod(**with_container(**{field: ["serve", "a\0b"]}))
    assert f"{field} holds a NUL character" in _waits(world, "InvalidField")


def _entries(total: int, parts: int = 8) -> list[Object]:
    return [{"name": f"PART_{n}", "value": str(n) * (total // parts)} for n in range(parts)]


@pytest.mark.parametrize("total", [16 * 1024, 100 * 1024, 256 * 1024, 400 * 1024])
def test_y8_no_event_and_no_row_grows_with_the_environment(total: int) -> None:
    world = World()
    world.create_pod(**with_container(env=_entries(total)))
    world.pump()
    world.tick()
    assert running(world.pod())
    events = [len(event.detail.model_dump_json()) for event in world.publisher.events]
    assert max(events) < 1024
    assert len(json.dumps(to_item(world.claim()))) < 8 * 1024


@pytest.mark.parametrize(("total", "fits"), [(16 * 1024, True), (100_000, True), (102_400, False), (256 * 1024, False)])
def test_y8_the_sum_of_an_environment_is_held_against_runpod_s_body_before_the_call(total: int, fits: bool) -> None:
    world = RunPodInstallation()
    world.create_pod(**with_container(env=_entries(total)))
    world.pump()
    sent = [one for one in world.account.requests if (one.method, one.path) == ("POST", "/v2/pods")]
    if fits:
        assert [total < len(one.body) <= MAX_BODY_BYTES for one in sent] == [True]
        return
    assert sent == []
    shown = condition(world.pod())["message"]
    assert f"RunPod takes {MAX_BODY_BYTES}; largest: env PART_0 ({total // 8} bytes)" in shown
    assert "00000000" not in shown
    world.run(3)
    assert world.alive() == []


@pytest.mark.parametrize(
    "spec",
    [
        {"volumes": [{"name": f"{'v' * 50}-{n}", "emptyDir": {}} for n in range(4000)]},
        {"nodeSelector": {f"key-{n}": "b" * 60 for n in range(4000)}},
    ],
    ids=["4000 volumes are refused", "4000 labels that no Node has"],
)
def test_y8_what_a_pod_is_told_of_its_fields_fits_a_row_however_long_the_pod_is(
    dynamodb: DynamoDBClient, spec: Object
) -> None:
    world = World(claims=DynamoClaimStore(dynamodb, "claims"))
    world.create_pod(**spec)
    world.pump()
    world.run(1)
    assert world.claim().phase is Phase.PENDING
    assert len(world.claim().message) <= 2000
    assert len(condition(world.pod())["message"]) < 2100
    assert world.billed() == []


@pytest.fixture(params=["memory", "dynamo"])
def ledger(request: pytest.FixtureRequest) -> MemoryClaimStore | DynamoClaimStore:
    """Each twin of the claims ledger."""
    if request.param == "memory":
        return MemoryClaimStore()
    return DynamoClaimStore(request.getfixturevalue("dynamodb"), "claims")


def _placed(world: World) -> Object:
    world.create_pod()
    world.deliver(world.queue.pop())
    (envelope,) = world.publisher.take()
    return envelope


class _Frozen:
    """A function that is frozen between its first read of the claim and its next write; others work meanwhile."""

    def __init__(self, world: World, meanwhile: Callable[[], object]) -> None:
        self._claims: Any = world.claims
        self._save, self._meanwhile = self._claims.save, meanwhile
        self._claims.save = self.save  # type: ignore[method-assign]

    def save(self, before: Claim, after: Claim, **limits: Any) -> Claim:
        self._claims.save = self._save
        self._meanwhile()
        saved: Claim = self._save(before, after, **limits)
        return saved


@pytest.mark.parametrize("minutes", [0, 3, 60])
def test_y12_a_function_that_was_frozen_between_read_and_write_loses_by_the_condition(
    ledger: MemoryClaimStore | DynamoClaimStore, minutes: int
) -> None:
    world = World(claims=ledger)
    envelope = _placed(world)
    provisioning = handler("provisioning", world)

    def another_worker_then_time_passes() -> None:
        assert failed(provisioning(batch(envelope))) == []
        world.clock.advance(timedelta(minutes=minutes))

    _Frozen(world, another_worker_then_time_passes)
    assert failed(provisioning(batch(envelope))) == []
    assert world.claim().phase is Phase.RELEASED
    assert world.simulated.script.counts[Call.PROVISION] == 1
    assert len(world.billed()) == 1


@pytest.mark.parametrize(
    ("ledger", "skew"),
    [("memory", timedelta(minutes=-10)), ("memory", timedelta(hours=2)), ("dynamo", timedelta(minutes=10))],
    indirect=["ledger"],
)
def test_y12_a_worker_whose_clock_is_off_leaves_one_instance_however_it_reads_the_lease(
    ledger: MemoryClaimStore | DynamoClaimStore, skew: timedelta
) -> None:
    world = World(claims=ledger, visibility_delay=timedelta(seconds=5))
    envelope = _placed(world)
    claim_id = world.claim().claim_id
    skewed = ManualClock(START + skew)
    looks = iter(range(4))

    def the_other_looks(call: Call, _: object) -> None:
        if call is not Call.PROVISION or next(looks, None) is None:
            return
        for _ in range(4):
            services = world.services("provisioning")
            provision_claim(type(services)(**{**vars(services), "clock": skewed}), claim_id)
            skewed.advance(timedelta(seconds=15))

    world.simulated.script.before_each(the_other_looks)
    assert failed(handler("provisioning", world)(batch(envelope))) == []
    world.simulated.script.before_each(None)
    until_true(world, lambda: running(world.pod()) and len(world.billed()) == 1, minutes=20)
    world.run(3)
    assert world.billed() == [world.claim().instance_id]
