"""What every blocks ledger does."""

from __future__ import annotations

from datetime import timedelta

from nebula.stores.blocks import Block, BlockStore

from tests.support.claims import NOW, SECOND


def block(expires_in: timedelta = 30 * SECOND, **changes: object) -> Block:
    made = Block(
        provider="runpod",
        shape="H100:8/cpu=1/mem=1Gi/disk=default",
        capacity_type="OnDemand",
        region="any[cloud=SECURE]",
        reason="NoCapacity",
        code="400",
        created_at=NOW,
        expires_at=NOW + expires_in,
    )
    return made.model_copy(update=changes)


def test_what_is_written_is_active(blocks: BlockStore) -> None:
    assert blocks.active("runpod", NOW) == []
    assert blocks.put(block()) == block()
    assert blocks.active("runpod", NOW) == [block()]
    assert blocks.active("modal", NOW) == []


def test_an_expired_block_is_not_active_however_long_its_row_stays(blocks: BlockStore) -> None:
    blocks.put(block())
    assert blocks.active("runpod", NOW + 30 * SECOND - timedelta(microseconds=1)) != []
    assert blocks.active("runpod", NOW + 30 * SECOND) == []


def test_a_block_is_extended_and_never_shortened(blocks: BlockStore) -> None:
    longer = blocks.put(block(60 * SECOND))
    assert blocks.put(block(30 * SECOND, reason="Other")) == longer
    assert blocks.active("runpod", NOW) == [longer]
    longest = block(61 * SECOND, reason="Other", created_at=NOW + SECOND)
    assert blocks.put(longest) == longest
    assert blocks.active("runpod", NOW) == [longest]
    assert blocks.put(longest.model_copy(update={"reason": "Third"})) == longest


def test_an_expired_row_is_replaced(blocks: BlockStore) -> None:
    blocks.put(block(SECOND))
    later = block(90 * SECOND, created_at=NOW + 60 * SECOND)
    assert blocks.put(later) == later
    assert blocks.active("runpod", NOW + 60 * SECOND) == [later]


def test_blocks_of_different_reach_stand_side_by_side(blocks: BlockStore) -> None:
    pause = block(shape="*", capacity_type="*", region="*", kind="rate_limited")
    whole = block(shape="*", capacity_type="*", region="*")
    made = {blocks.put(b).key for b in (block(), pause, whole, block(region="b"), block(capacity_type="Spot"))}
    assert {b.key for b in blocks.active("runpod", NOW)} == made
    assert len(made) == 5


def test_clear_removes_one_provider(blocks: BlockStore) -> None:
    blocks.put(block())
    blocks.put(block(SECOND, region="b"))
    other = blocks.put(block(provider="modal"))
    assert blocks.clear("runpod") == 2
    assert blocks.clear("runpod") == 0
    assert blocks.active("runpod", NOW) == []
    assert blocks.active("modal", NOW) == [other]


def test_a_place_of_any_length_can_be_blocked_and_is_told_from_another(blocks: BlockStore) -> None:
    long = ",".join(f"region-{number}" for number in range(400))
    made = [
        blocks.put(block(region=long)),
        blocks.put(block(region=long + "-b")),
        blocks.put(block(region=long, kind="x")),
    ]
    assert len({one.key for one in made}) == 3
    assert sorted(one.key for one in blocks.active("runpod", NOW)) == sorted(one.key for one in made)
    assert blocks.put(block(60 * SECOND, region=long)).expires_at == NOW + 60 * SECOND
    assert len(blocks.active("runpod", NOW)) == 3
    assert blocks.clear("runpod") == 3
