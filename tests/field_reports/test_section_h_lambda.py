"""Field reports, section H, first half: Lambda, its events and their failures, on the functions' own handlers."""

from __future__ import annotations

import json
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from nebula.clock import ManualClock
from nebula.domain.claim import Phase
from nebula.events.details import DetailType
from nebula.lifecycle.transitions import MAX_CHAINED_REJECTIONS
from nebula.providers.errors import NoCapacityError
from nebula.providers.simulated import Call, SimulatedProvider

from tests.support.cloudformation import FUNCTIONS, ROLES, allowed, logical_id, mappings, of_type, properties
from tests.support.handlers import ROOT, about_pod, batch, failed, handler
from tests.support.tripwire import CrashError
from tests.support.world import START, World, pool_object, running

Object = dict[str, Any]
HOPS = 16
LEASE = timedelta(seconds=120)
SPENT = SimpleNamespace(get_remaining_time_in_millis=lambda: 0)


def _placed(world: World, name: str = "train") -> Object:
    """A placed Pod's ``Claim Placed``, not delivered yet."""
    world.create_pod(name)
    world.deliver(world.queue.pop())
    (envelope,) = world.publisher.take()
    assert envelope["detail-type"] == "Claim Placed"
    return envelope


@pytest.mark.parametrize("function", FUNCTIONS)
def test_ha_no_function_writes_to_what_wakes_it(function: str) -> None:
    queues = allowed(ROLES[function], "sqs")
    fed = {queue for queue in mappings(function) if "sqs:SendMessage" in queues.get(queue, set())}
    assert fed == ({"TickQueue"} if function == "status_polling" else set())
    for rule in of_type("AWS::Events::Rule").values():
        if logical_id(rule["Targets"][0]["Arn"]) in mappings(function):
            assert f"nebula.{function}" not in rule["EventPattern"]["source"]


def test_ha_a_tick_from_the_queue_enqueues_none_so_no_chain_of_ticks_exists() -> None:
    world = World()
    world.create_pod()
    world.pump()
    enqueued: list[object] = []
    world.ticks.enqueue = enqueued.append  # type: ignore[method-assign,assignment]
    for _ in range(20):
        world.tick()
    assert enqueued == []
    world.minute()
    assert len(enqueued) == 1


def test_ha_a_pod_that_every_provider_refuses_leaves_its_chain_of_events_before_sixteen_hops() -> None:
    clock = ManualClock(START)
    providers = [SimulatedProvider(clock, name=f"simulated-{n}") for n in range(8)]
    world = World(*providers, clock=clock, pool=pool_object(*(p.name for p in providers)))
    for provider in providers:
        provider.script.fail(Call.PROVISION, NoCapacityError("sold out"), times=1000)
    world.create_pod()
    world.pump()
    published = [event.detail_type for event in world.publisher.events]
    assert published.count(DetailType.PROVISION_REJECTED) == MAX_CHAINED_REJECTIONS - 1
    assert len(published) + 1 < HOPS
    assert world.claim().next_action_at is not None


def test_hb_a_time_out_leaves_a_lease_with_an_end_and_no_retry_is_blocked_past_it() -> None:
    world = World()
    envelope = _placed(world)
    provisioning = handler("provisioning", world)
    world.simulated.script.fail(Call.PROVISION, CrashError("Task timed out after 90.00 seconds"))
    with pytest.raises(CrashError):
        provisioning(batch(envelope))
    assert world.claim().attempts[-1].lease_until == world.clock.now() + LEASE
    assert failed(provisioning(batch(envelope))) == []
    assert world.claim().phase is Phase.PROVISIONING
    world.clock.advance(LEASE)
    for _ in range(3):
        assert failed(provisioning(batch(envelope))) == []
        world.clock.advance(timedelta(seconds=10))
    assert world.claim().phase is Phase.RELEASED
    assert len(world.billed()) == 1


def test_hc_a_remaining_time_of_0_leaves_the_lease_its_end() -> None:
    world = World()
    envelope = _placed(world)
    world.simulated.script.fail(Call.PROVISION, CrashError("Task timed out after 90.00 seconds"))
    provisioning = handler("provisioning", world)
    with pytest.raises(CrashError):
        provisioning(batch(envelope), SPENT)
    claim = world.claim()
    assert claim.attempts[-1].lease_until == claim.next_action_at == world.clock.now() + LEASE
    world.run(4)
    assert running(world.pod())


def test_hc_a_status_loop_with_no_time_left_stops_cleanly_and_the_next_goes_on() -> None:
    world = World()
    world.create_pod()
    world.pump()
    polling = handler("status_polling", world)
    schedule = json.loads((ROOT / "events/schedule-status.json").read_text())
    polling(schedule, SPENT)
    assert not running(world.pod())
    assert any(message == "look cut short" for _, message, _ in world.telemetry.lines)
    world.clock.advance(timedelta(minutes=1))
    polling(schedule)
    assert running(world.pod())


@pytest.mark.parametrize(
    "detail",
    [
        {"cluster": "test", "namespace": "default", "name": "train"},
        {"cluster": "test", "namespace": "default", "name": "train", "uid": None},
        {"cluster": None, "namespace": None, "name": None, "uid": None},
        {"cluster": "test", "namespace": "default", "name": "train", "uid": ""},
        {},
    ],
    ids=["the key is missing", "the key is None", "all of it is None", "the key is empty", "nothing"],
)
def test_hd_an_event_without_its_key_is_refused_and_no_later_event_gets_its_result(detail: Object) -> None:
    world = World()
    first = world.create_pod("first", announce=False)
    second = world.create_pod("second", announce=False)
    keyless = {"source": "nebula.kubernetes", "detail-type": "Pod Gated", "detail": {"schema_version": 1, **detail}}
    events = [about_pod("Pod Gated", first), keyless, keyless, about_pod("Pod Gated", second)]
    assert failed(handler("placement", world)(batch(*events))) == ["m1", "m2"]
    claims = {world.claim(name).claim_id for name in ("first", "second")}
    assert len(claims) == len(list(world.claims.live("test"))) == 2


def test_he_a_duplicate_while_the_first_is_in_progress_is_acknowledged_and_raises_no_alarm() -> None:
    world = World()
    envelope = _placed(world)
    provisioning = handler("provisioning", world)
    during: list[list[str]] = []

    def duplicate(call: Call, _: object) -> None:
        if call is Call.PROVISION:
            before = world.claims.writes
            during.append(failed(provisioning(batch(envelope))))
            assert world.claims.writes == before

    world.simulated.script.before_each(duplicate)
    assert failed(provisioning(batch(envelope))) == []
    assert during == [[]]
    assert world.telemetry.total("EventsFailed") == 0
    assert world.simulated.script.counts[Call.PROVISION] == 1
    assert world.simulated.script.counts[Call.FIND] == 0
    assert len(world.billed()) == 1


@pytest.mark.parametrize("function", FUNCTIONS)
def test_hf_every_mapping_reports_failures_by_item(function: str) -> None:
    assert mappings(function)
    for mapping in mappings(function).values():
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_hf_one_bad_record_fails_alone_and_nothing_is_bought_twice_when_it_comes_again() -> None:
    world = World()
    good = [_placed(world, name) for name in ("one", "two")]
    bad = {**good[0], "detail": {**good[0]["detail"], "claim_id": 7}}
    provisioning = handler("provisioning", world)
    assert failed(provisioning(batch(good[0], bad, good[1]))) == ["m1"]
    assert len(world.billed()) == 2
    assert failed(provisioning(batch(good[0], bad, good[1]))) == ["m1"]
    assert world.simulated.script.counts[Call.PROVISION] == 2


def test_hg_the_id_of_every_failing_record_is_in_the_answer() -> None:
    world = World()
    pod = world.create_pod(announce=False)
    good = about_pod("Pod Gated", pod)
    elsewhere = {**good, "detail": {**good["detail"], "cluster": "not-configured"}}
    answer = handler("placement", world)(batch(elsewhere, good, elsewhere, "no JSON"))
    assert failed(answer) == ["m0", "m2", "m3"]
    assert world.telemetry.total("EventsFailed") == 2
    assert world.telemetry.total("EventsRefused") == 1


def test_hg_a_cluster_that_does_not_answer_fails_the_record_so_that_it_comes_again() -> None:
    world = World()
    envelope = _placed(world)
    provisioning = handler("provisioning", world)

    def down(method: str, path: str) -> None:
        raise ConnectionError(f"{method} {path}")

    world.emulator.faults.append(down)
    assert failed(provisioning(batch(envelope))) == ["m0"]
    world.emulator.faults.clear()
    assert failed(provisioning(batch(envelope))) == []
    assert len(world.billed()) == 1


@pytest.mark.parametrize("body", ["", "null", "[]", "{}", '"text"', "\x00", '{"detail-type": ""}'])
def test_hh_an_id_in_the_answer_is_never_empty_and_always_one_of_the_batch(body: str) -> None:
    world = World()
    pod = world.create_pod(announce=False)
    event = batch(body, about_pod("Pod Gated", pod), body)
    answer = handler("placement", world)(event)
    assert failed(answer) == ["m0", "m2"]
    assert all(failed(answer))
    assert set(answer) == {"batchItemFailures"}


def test_hh_without_failures_the_list_is_there_and_empty() -> None:
    world = World()
    assert handler("placement", world)(batch()) == {"batchItemFailures": []}


def test_hi_whatever_is_invoked_asynchronously_has_its_retries_and_a_queue_for_what_failed() -> None:
    configured = {logical_id(c["FunctionName"]): c for c in of_type("AWS::Lambda::EventInvokeConfig").values()}
    for schedule in of_type("AWS::Scheduler::Schedule").values():
        target = schedule["Target"]
        assert logical_id(target["DeadLetterConfig"]["Arn"]) == "UndeliveredDeadLetters"
        assert target["RetryPolicy"].keys() == {"MaximumRetryAttempts", "MaximumEventAgeInSeconds"}
        asynchronous = configured.pop(logical_id(target["Arn"]))
        assert asynchronous["MaximumRetryAttempts"] in (0, 2)
        assert asynchronous["MaximumEventAgeInSeconds"] <= 3600
        assert logical_id(asynchronous["DestinationConfig"]["OnFailure"]["Destination"]) == "UndeliveredDeadLetters"
    assert configured == {}


def test_hi_rules_reach_queues_and_never_a_function_directly() -> None:
    for rule in of_type("AWS::Events::Rule").values():
        for target in rule["Targets"]:
            assert logical_id(target["Arn"]) in of_type("AWS::SQS::Queue")
            assert logical_id(target["DeadLetterConfig"]["Arn"]) == "UndeliveredDeadLetters"
    assert properties("UndeliveredDeadLetters")["MessageRetentionPeriod"] == 14 * 24 * 3600


def test_hi_the_schedule_twice_at_once_does_no_harm() -> None:
    world = World()
    world.create_pod()
    world.pump()
    schedule = json.loads((ROOT / "events/schedule-status.json").read_text())
    for _ in range(3):
        handler("status_polling", world)(schedule)
        world.pump()
    assert running(world.pod())
    assert len(world.billed()) == 1
