"""Field reports, section H, second half: DynamoDB, SQS and EventBridge as stores and as carriers."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from nebula.clock import ManualClock
from nebula.domain.claim import Phase
from nebula.domain.credential import CredentialState
from nebula.events.details import DetailType, PodDetail
from nebula.events.envelope import Event
from nebula.events.eventbridge import EventBridgePublisher
from nebula.events.publisher import PublishError
from nebula.events.sqs_ticks import SqsTickQueue
from nebula.providers.simulated import Call
from nebula.stores.claims import ConflictError
from nebula.stores.dynamo_blocks import DynamoBlockStore
from nebula.stores.dynamo_claims import DynamoClaimStore
from nebula.stores.dynamo_items import to_attributes
from nebula.stores.dynamo_sightings import DynamoSightingStore

from tests.support.aws_stubs import stubbed
from tests.support.claims import placed
from tests.support.cloudformation import of_type, written
from tests.support.handlers import about_pod, batch, failed, handler, outcomes
from tests.support.lending import DAY, Lending
from tests.support.placing import block
from tests.support.world import START, World, running, until_true

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

SECOND = timedelta(seconds=1)


def test_hj_a_block_that_is_stored_past_its_expiry_blocks_nothing(dynamodb: DynamoDBClient) -> None:
    clock = ManualClock(START)
    blocks = DynamoBlockStore(dynamodb, "blocks")
    world = World(clock=clock, blocks=blocks)
    blocks.put(block("simulated", created_at=START - DAY, expires_at=START - SECOND))
    assert dynamodb.scan(TableName="blocks")["Count"] == 1
    assert blocks.active("simulated", clock.now()) == []
    world.create_pod()
    world.pump()
    assert world.claim().phase is Phase.RELEASED


def test_hj_an_expired_block_is_replaced_and_an_expired_sighting_is_the_first_again(dynamodb: DynamoDBClient) -> None:
    blocks, sightings = DynamoBlockStore(dynamodb, "blocks"), DynamoSightingStore(dynamodb, "blocks")
    blocks.put(block("simulated", created_at=START - DAY, expires_at=START - SECOND))
    fresh = block("simulated", created_at=START, expires_at=START + DAY)
    assert blocks.put(fresh) == fresh
    sightings.first_seen("orphan", START - 30 * DAY)
    assert not sightings.known("orphan", START)
    assert sightings.first_seen("orphan", START) == START


def test_hk_clearing_a_provider_s_blocks_leaves_one_that_was_written_again_meanwhile(dynamodb: DynamoDBClient) -> None:
    blocks = DynamoBlockStore(dynamodb, "blocks")
    old = block("simulated", created_at=START, expires_at=START + SECOND)
    again = old.model_copy(update={"expires_at": START + DAY})
    blocks.put(old)

    def another_worker_blocks_again(**_: Any) -> None:
        DynamoBlockStore(dynamodb, "blocks").put(again)

    dynamodb.meta.events.register("before-call.dynamodb.DeleteItem", another_worker_blocks_again)
    assert blocks.clear("simulated") == 0
    assert blocks.active("simulated", START) == [again]
    dynamodb.meta.events.unregister("before-call.dynamodb.DeleteItem", another_worker_blocks_again)
    assert blocks.clear("simulated") == 1
    assert blocks.active("simulated", START) == []


def test_hk_a_credential_that_is_used_again_since_it_was_read_is_not_retired() -> None:
    lending = Lending()
    lending.record("a-password")
    lending.end(lending.start())
    lending.clock.advance(8 * DAY)
    save = lending.credentials.save

    def used_meanwhile(before: Any, after: Any) -> Any:
        if after.state is CredentialState.RETIRING:
            lending.credentials.save = save  # type: ignore[method-assign]
            lending.start("again")
        return save(before, after)

    lending.credentials.save = used_meanwhile  # type: ignore[method-assign,assignment]
    lending.retire()
    assert lending.states() == [CredentialState.ACTIVE]
    assert len(lending.objects()) == 1


@pytest.mark.parametrize("price", ["30.40", "0.1", "4.49", "0.000123", "2.0899999999999999"])
def test_hl_prices_go_through_the_real_serializer_and_come_back_exactly(dynamodb: DynamoDBClient, price: str) -> None:
    claims = DynamoClaimStore(dynamodb, "claims")
    claim = claims.create(placed(reserve=price), budget_limit=Decimal(100))
    found = claims.get(claim.claim_id)
    assert found is not None
    assert found.candidate is not None
    assert str(found.candidate.reserve_per_hour) == price
    assert claims.budget(claim.cluster, claim.node_pool).committed_per_hour == Decimal(price)


def test_hl_a_float_is_refused_before_it_reaches_the_table() -> None:
    with pytest.raises(TypeError, match="float has no place in a ledger row"):
        to_attributes({"price": 30.40})


def test_hm_no_function_reads_a_stream_so_no_record_can_block_a_shard() -> None:
    sources = [str(m["EventSourceArn"]) for m in of_type("AWS::Lambda::EventSourceMapping").values()]
    assert sources
    assert all("Queue" in source for source in sources)
    assert not any("StreamSpecification" in table for table in of_type("AWS::DynamoDB::Table").values())
    assert not any("Kinesis" in resource["Type"] for resource in written()["Resources"].values())


def _gated(number: int) -> Event:
    detail = PodDetail(cluster="test", namespace="default", name=f"p{number}", uid=f"u{number}")
    return Event(source="nebula.kubernetes", detail_type=DetailType.POD_GATED, detail=detail)


def _answer(*codes: str) -> dict[str, Any]:
    entries = [{"ErrorCode": code, "ErrorMessage": "m"} if code else {"EventId": "e"} for code in codes]
    return {"FailedEntryCount": sum(bool(code) for code in codes), "Entries": entries}


def test_hn_failed_entries_of_put_events_are_sent_again_and_then_raised_with_what_is_unsent() -> None:
    client, stub = stubbed("events")
    stub.add_response("put_events", _answer("", "ThrottlingException", "InternalFailure"))
    stub.add_response("put_events", _answer("ThrottlingException", ""))
    for _ in range(2):
        stub.add_response("put_events", _answer("ThrottlingException"))
    events = [_gated(number) for number in range(3)]
    with pytest.raises(PublishError, match="ThrottlingException: 1") as caught:
        EventBridgePublisher(client, "bus", sleep=lambda _: None).publish(events)
    assert list(caught.value.unsent) == [events[1]]
    stub.assert_no_pending_responses()


def test_hn_failed_ticks_of_a_batch_are_sent_again_and_then_raised() -> None:
    client, stub = stubbed("sqs")
    lost = {"Id": "1", "SenderFault": False, "Code": "InternalError"}
    sent = {"Id": "0", "MessageId": "m", "MD5OfMessageBody": "d"}
    stub.add_response("send_message_batch", {"Successful": [sent], "Failed": [lost]})
    for _ in range(2):
        stub.add_response("send_message_batch", {"Successful": [], "Failed": [lost]})
    ticks = SqsTickQueue(client, "https://sqs.eu-central-1.amazonaws.com/1/ticks", ManualClock(START))
    with pytest.raises(PublishError, match="1 of 2 ticks stayed unsent"):
        ticks.enqueue([SECOND, 2 * SECOND])
    stub.assert_no_pending_responses()


def test_ho_a_handler_that_does_nothing_says_so_and_one_that_fails_counts_it() -> None:
    world = World()
    pod = world.create_pod(announce=False, labels={"nebula.inftyai.com/enabled": "false"})
    unknown = {**about_pod("Pod Gated", pod), "detail-type": "Pod Gaited"}
    answer = handler("placement", world)(batch(about_pod("Pod Gated", pod), unknown))
    assert outcomes(world) == [("Pod Gated", "no claim")]
    assert failed(answer) == ["m1"]
    assert world.telemetry.total("EventsRefused") == 1


def test_hp_without_a_single_event_of_the_cluster_every_pod_still_runs_and_ends() -> None:
    world = World()
    for number in range(3):
        world.create_pod(f"train-{number}", announce=False)
    until_true(world, lambda: all(running(world.pod(f"train-{n}")) for n in range(3)), minutes=4)
    assert len(world.billed()) == 3
    for number in range(3):
        world.delete_pod(f"train-{number}", announce=False)
    until_true(world, lambda: world.billed() == [] and not list(world.claims.live("test")), minutes=4)
    assert all(world.pod(f"train-{n}") is None for n in range(3))


def test_hp_with_every_event_of_ours_lost_the_claim_goes_on_by_its_due_time() -> None:
    world = World()
    world.create_pod()
    world.pump(limit=1000)
    publish = world.publisher.publish
    world.publisher.publish = lambda events: None  # type: ignore[method-assign]
    world.create_pod("second", announce=True)
    world.pump()
    assert world.claim("second").phase is Phase.PLACED
    world.publisher.publish = publish  # type: ignore[method-assign]
    until_true(world, lambda: running(world.pod("second")), minutes=4)
    assert world.simulated.script.counts[Call.PROVISION] == 2


def test_hk_a_claim_that_moved_since_it_was_read_is_not_overwritten(dynamodb: DynamoDBClient) -> None:
    claims = DynamoClaimStore(dynamodb, "claims")
    read = claims.create(placed())
    claims.save(read, read.model_copy(update={"message": "moved"}))
    with pytest.raises(ConflictError):
        claims.save(read, read.model_copy(update={"phase": Phase.TERMINATED}))
