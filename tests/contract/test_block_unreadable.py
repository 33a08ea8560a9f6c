"""What every blocks ledger does with a row that only a newer release can read: placement goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from nebula.domain.unreadable import UnreadableBlock
from nebula.stores.blocks import UNREADABLE, Block, BlockStore
from nebula.stores.dynamo_items import to_attributes
from nebula.stores.memory_blocks import MemoryBlockStore

from tests.support.claims import NOW, SECOND

UNTIL = NOW + 30 * SECOND
SCOPE = {"shape": "H100:1", "capacity_type": "OnDemand", "region": "eu"}
MakeNewer = Callable[..., None]


@pytest.fixture
def make_newer(blocks: BlockStore, request: pytest.FixtureRequest) -> MakeNewer:
    """Gives attributes of a row values that a newer release would write."""
    if isinstance(blocks, MemoryBlockStore):
        return blocks.make_newer
    client = request.getfixturevalue("dynamodb")

    def rewrite(block: Block, **changes: Any) -> None:
        client.update_item(
            TableName="blocks",
            Key={"provider": {"S": block.provider}, "block_key": {"S": block.key}},
            UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in changes),
            ExpressionAttributeNames={f"#{name}": name for name in changes},
            ExpressionAttributeValues={f":{name}": value for name, value in to_attributes(changes).items()},
        )

    return rewrite


def block(**changes: Any) -> Block:
    fields = {"provider": "runpod", "reason": "NoCapacity", "created_at": NOW, "expires_at": UNTIL, **SCOPE}
    return Block.model_validate(fields | changes)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"reason": {"word": "NoCapacity"}}, UNREADABLE),
        ({"created_at": "at dawn"}, "NoCapacity"),
        ({"expires_at": {"from": 1}, "code": 400}, "NoCapacity"),
    ],
    ids=["its reason", "its beginning", "its end"],
)
def test_what_can_be_told_of_it_blocks_until_its_end(
    blocks: BlockStore, make_newer: MakeNewer, changes: dict[str, Any], reason: str
) -> None:
    newer, other = blocks.put(block()), blocks.put(block(region="us"))
    make_newer(newer, **changes)
    unreadable: list[UnreadableBlock] = []
    stands, *rest = blocks.active("runpod", NOW, unreadable)
    assert (stands.key, stands.reason) == (newer.key, reason)
    assert UNTIL <= stands.expires_at < UNTIL + SECOND
    assert (rest, unreadable) == ([other], [])
    assert blocks.active("runpod", stands.expires_at) == []


@pytest.mark.parametrize(
    "changes",
    [{"shape": ["H100:1", "H100:2"]}, {"kind": 2}, {"expires_at": "at dusk", "expires_at_epoch": "soon"}],
    ids=["what", "how", "until when"],
)
def test_one_that_does_not_say_what_it_blocks_until_when_blocks_nothing_and_is_told_of(
    blocks: BlockStore, make_newer: MakeNewer, changes: dict[str, Any]
) -> None:
    newer, other = blocks.put(block()), blocks.put(block(region="us"))
    make_newer(newer, **changes)
    unreadable: list[UnreadableBlock] = []
    assert blocks.active("runpod", NOW, unreadable) == [other]
    (lost,) = unreadable
    assert (lost.provider, lost.block_key) == ("runpod", newer.key)
    assert next(iter(changes)) in lost.problem
    assert blocks.active("runpod", NOW) == [other]


@pytest.mark.parametrize("changes", [{"shape": 1}, {"reason": 1}], ids=["what", "why"])
def test_one_that_is_over_is_nothing(blocks: BlockStore, make_newer: MakeNewer, changes: dict[str, Any]) -> None:
    make_newer(blocks.put(block()), **changes)
    unreadable: list[UnreadableBlock] = []
    assert blocks.active("runpod", UNTIL, unreadable) == []
    assert unreadable == []


def test_a_later_refusal_replaces_it_and_an_earlier_end_does_not(blocks: BlockStore, make_newer: MakeNewer) -> None:
    newer = blocks.put(block())
    make_newer(newer, reason=1)
    assert blocks.put(block(expires_at=UNTIL - SECOND)).expires_at == UNTIL
    make_newer(newer, shape=1)
    shorter = block(expires_at=UNTIL - SECOND)
    assert blocks.put(shorter) == shorter
    longer = block(expires_at=UNTIL + SECOND)
    assert blocks.put(longer) == longer
    assert blocks.active("runpod", NOW) == [longer]


def test_it_is_cleared_with_the_others(blocks: BlockStore, make_newer: MakeNewer) -> None:
    newer = blocks.put(block())
    make_newer(newer, shape=1)
    assert blocks.clear("runpod") == 1
    assert blocks.put(newer) == newer
    assert blocks.active("runpod", NOW) == [newer]
