"""Properties of the decision, over generated pools, price lists, blocks and requests (docs/placement.md)."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st
from nebula.domain.candidate import Candidate, CapacityType, Shape
from nebula.domain.nodepool import NodePool, ProviderEntry, Strategy
from nebula.domain.offering import Offering
from nebula.domain.workload import RestartPolicy
from nebula.placement.blocklist import matches
from nebula.placement.catalogue import Catalogue
from nebula.placement.engine import decide
from nebula.placement.request import PlacementRequest, ProviderSupply
from nebula.placement.verdict import Decision
from nebula.providers.base import Capabilities, RegionSet
from nebula.stores.blocks import Block

from tests.support.placing import NOW, offering

NAMES = ("one", "two", "three")
REGIONS = ("a", "b")
TIERS = tuple(CapacityType)
EXAMPLES = settings(max_examples=120, deadline=None)


@dataclass
class Scene:
    request: PlacementRequest
    pool: NodePool
    supplies: list[ProviderSupply]
    rows: dict[str, list[Offering]]
    blocks: list[Block]
    live: dict[str, int]

    def decide(self) -> Decision:
        return decide(self.request, self.pool, self.supplies, self.blocks, self.live, NOW)


prices = st.integers(1, 6).map(lambda halves: Decimal(halves) / 2)
maybe_price = st.none() | prices


@st.composite
def offerings(draw: st.DrawFn, provider: str) -> list[Offering]:
    rows = []
    for number in range(draw(st.integers(0, 4))):
        whole = draw(st.booleans())
        rows.append(
            offering(
                provider,
                draw(st.sampled_from(("H100", "H100", "T4"))),
                str(draw(prices)),
                instance_type=f"{provider}-{number}",
                per_accelerator=not whole,
                accelerator_count=draw(st.sampled_from((1, 2, 8))) if whole else 1,
                capacity_type=draw(st.sampled_from(TIERS)),
                regions=tuple(draw(st.sets(st.sampled_from(REGIONS)))),
                available=draw(st.integers(0, 5)) > 0,
            )
        )
    return rows


abilities = st.none() | st.builds(
    Capabilities,
    capacity_types=st.frozensets(st.sampled_from(TIERS), min_size=1),
    reports_exit_code=st.booleans(),
    ingress_authentication=st.booleans(),
)


def supply_of(entry: ProviderEntry, can: Capabilities | None, rows: list[Offering]) -> ProviderSupply:
    if can is None:
        return ProviderSupply(entry, unconfigured="no key")
    sets = [RegionSet(label=name, ids=(name,)) for name in entry.regions] or [RegionSet(label="any")]
    return ProviderSupply(entry, capabilities=can, catalogue=Catalogue(rows), region_sets=tuple(sets))


@st.composite
def blocks(draw: st.DrawFn, shape: Shape) -> Block:
    return Block(
        provider=draw(st.sampled_from(NAMES)),
        shape=draw(st.sampled_from(("*", "H100:*", str(shape)))),
        capacity_type=draw(st.sampled_from(("*", *map(str, TIERS)))),
        region=draw(st.sampled_from(("*", "any", *REGIONS))),
        kind=draw(st.sampled_from(("blocked", "rate_limited"))),
        reason="NoCapacity",
        created_at=NOW,
        expires_at=NOW + timedelta(seconds=draw(st.integers(-5, 60))),
    )


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    shape = Shape(accelerator="H100", accelerator_count=draw(st.sampled_from((1, 2, 4))))
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3))
    entries = tuple(
        ProviderEntry(
            name=name,
            weight=draw(st.integers(1, 5)),
            regions=tuple(draw(st.lists(st.sampled_from(REGIONS), max_size=2, unique=True))),
        )
        for name in names
    )
    rows = {name: draw(offerings(name)) for name in set(names)}
    known = {name: draw(abilities) for name in set(names)}
    return Scene(
        request=PlacementRequest(
            shape=shape,
            claim_id=draw(st.sampled_from(("a", "b"))),
            restart_policy=draw(st.sampled_from(tuple(RestartPolicy))),
            publishes=draw(st.booleans()),
            budget_left=draw(maybe_price),
            exclusions=frozenset(draw(st.sets(st.sampled_from([f"one/{shape}/OnDemand/any", f"two/{shape}/Spot/a"])))),
        ),
        pool=NodePool(
            name="pool",
            providers=entries,
            capacity_types=tuple(draw(st.lists(st.sampled_from(TIERS), min_size=1, max_size=2))),
            strategy=draw(st.sampled_from(tuple(Strategy))),
            max_price_per_hour=draw(maybe_price),
            allow_larger_shapes=draw(st.booleans()),
            allow_unknown_exit=draw(st.booleans()),
        ),
        supplies=[supply_of(entry, known[entry.name], rows[entry.name]) for entry in entries],
        rows=rows,
        blocks=draw(st.lists(blocks(shape), max_size=4)),
        live=draw(st.dictionaries(st.sampled_from(NAMES), st.integers(0, 9))),
    )


def admissible(scene: Scene, candidate: Candidate) -> bool:
    """Every filter once more, straight from its definition."""
    supply = next(
        s
        for s in scene.supplies
        if s.name == candidate.provider and candidate.region in {r.label for r in s.region_sets}
    )
    can, asked = supply.capabilities, scene.request
    known = {row.instance_type: row for row in scene.rows[candidate.provider]}
    sold = [known[instance_type] for instance_type in candidate.instance_types]
    limits = [limit for limit in (scene.pool.max_price_per_hour, asked.budget_left) if limit is not None]
    count = candidate.shape.accelerator_count
    return (
        can is not None
        and candidate.capacity_type in can.capacity_types
        and candidate.capacity_type in scene.pool.capacity_types
        and all(candidate.reserve_per_hour <= limit for limit in limits)
        and candidate.price.total <= candidate.reserve_per_hour
        and (count == asked.shape.accelerator_count or scene.pool.allow_larger_shapes)
        and count >= asked.shape.accelerator_count
        and all(row.accelerator == "H100" and row.capacity_type == candidate.capacity_type for row in sold)
        and all(row.available for row in sold)
        and all(row.per_accelerator or row.accelerator_count == count for row in sold)
        and all(not row.regions or not candidate.regions or set(row.regions) & set(candidate.regions) for row in sold)
        and (can.ingress_authentication or not asked.publishes)
        and (can.reports_exit_code or scene.pool.allow_unknown_exit or asked.restart_policy is RestartPolicy.ALWAYS)
        and not any(matches(block, candidate) and block.expires_at > NOW for block in scene.blocks)
        and candidate.key not in asked.exclusions
    )


@EXAMPLES
@given(scenes())
def test_the_choice_passes_every_filter(scene: Scene) -> None:
    for verdict in scene.decide().verdicts:
        if verdict.rank is not None:
            assert admissible(scene, verdict.offer.candidate())


@EXAMPLES
@given(scenes())
def test_every_candidate_has_exactly_one_verdict(scene: Scene) -> None:
    decision = scene.decide()
    keys = [verdict.offer.key for verdict in decision.verdicts]
    assert len(keys) == len(set(keys))
    assert all((v.rank is None) is (v.refusal is not None) for v in decision.verdicts)
    for tier in set(scene.pool.capacity_types):
        considered = {(v.offer.provider, v.offer.region) for v in decision.verdicts if v.offer.capacity_type == tier}
        assert {s.name for s in scene.supplies} == {name for name, _ in considered}
    assert (decision.candidate is None) is (decision.retry_at is not None)


@EXAMPLES
@given(scenes())
def test_no_tier_is_entered_while_an_earlier_one_has_a_candidate(scene: Scene) -> None:
    ranked = sorted((v for v in scene.decide().verdicts if v.rank is not None), key=lambda v: v.rank or 0)
    order = {tier: number for number, tier in reversed(list(enumerate(scene.pool.capacity_types)))}
    tiers = [order[v.offer.capacity_type] for v in ranked]
    assert tiers == sorted(tiers)
    assert [v.rank for v in ranked] == list(range(1, len(ranked) + 1))


@EXAMPLES
@given(scenes())
def test_lowest_price_is_never_beaten_in_its_tier(scene: Scene) -> None:
    scene.pool = scene.pool.model_copy(update={"strategy": Strategy.LOWEST_PRICE})
    decision = scene.decide()
    if decision.candidate is None:
        return
    rivals = [
        v.offer.quotes[0].total
        for v in decision.verdicts
        if v.rank is not None and v.offer.capacity_type == decision.candidate.capacity_type
    ]
    assert decision.candidate.price.total == min(rivals)


@EXAMPLES
@given(scenes(), st.integers(0, 4))
def test_a_blocked_newcomer_changes_nothing_among_the_rest(scene: Scene, at: int) -> None:
    before = scene.decide()
    entry = ProviderEntry(name="newcomer", weight=9)
    supply = ProviderSupply(
        entry,
        capabilities=Capabilities(capacity_types=frozenset(TIERS), reports_exit_code=True, ingress_authentication=True),
        catalogue=Catalogue([offering("newcomer", price="0.01", capacity_type=tier) for tier in TIERS]),
        region_sets=(RegionSet(label="any"),),
    )
    at = min(at, len(scene.supplies))
    entries = list(scene.pool.providers)
    entries.insert(at, entry)
    scene.supplies.insert(at, supply)
    scene.pool = scene.pool.model_copy(update={"providers": tuple(entries)})
    scene.live = {**scene.live, "newcomer": 3}
    scene.blocks.append(
        Block(provider="newcomer", reason="NoCapacity", created_at=NOW, expires_at=NOW + timedelta(seconds=30))
    )
    assert scene.decide().candidate == before.candidate


@EXAMPLES
@given(scenes(), st.randoms(use_true_random=False))
def test_the_decision_depends_on_nothing_else(scene: Scene, chance: random.Random) -> None:
    first = scene.decide()
    chance.shuffle(scene.blocks)
    shuffled = []
    for supply in scene.supplies:
        rows = list(scene.rows[supply.name])
        chance.shuffle(rows)
        shuffled.append(supply if supply.capabilities is None else replace(supply, catalogue=Catalogue(rows)))
    scene.supplies = shuffled
    again = scene.decide()
    assert again.verdicts == first.verdicts
    assert (again.candidate, again.retry_at, again.message) == (first.candidate, first.retry_at, first.message)
