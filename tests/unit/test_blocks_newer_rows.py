"""A block whose row only a newer release can read: placement goes on, and the sweep tells of it."""

from __future__ import annotations

from datetime import timedelta

from nebula.domain.claim import Phase
from nebula.stores.blocks import Block

from tests.support.mischief import said
from tests.support.world import World


def with_block(**changes: object) -> tuple[World, Block]:
    """A world whose provider has a block of the whole provider, as a newer release wrote it."""
    world = World()
    now = world.clock.now()
    block = world.blocks.put(
        Block(provider="simulated", reason="RateLimited", created_at=now, expires_at=now + timedelta(hours=1))
    )
    world.blocks.make_newer(block, **changes)
    return world, block


def test_pods_are_placed_beside_one_that_does_not_say_what_it_blocks_and_the_alarm_names_it() -> None:
    world, block = with_block(shape=["H100:1", "H100:2"])
    world.create_pod("train")
    world.run(1)
    assert world.claim("train").phase is Phase.RELEASED
    assert len(world.billed()) == 1
    (line,) = said(world, "blocks not readable")
    assert (line["provider"], line["blocks"], line["of"], line["fields"]) == ("simulated", [block.key], 1, "shape")
    assert world.telemetry.total("Defects") == 1


def test_one_that_says_what_it_blocks_and_until_when_is_a_block() -> None:
    world, _ = with_block(reason={"word": "RateLimited"})
    world.create_pod("train")
    world.run(1)
    assert world.claim("train").phase is Phase.PENDING
    assert world.billed() == []
    assert said(world, "blocks not readable") == []
    world.run(61)
    assert len(world.billed()) == 1
