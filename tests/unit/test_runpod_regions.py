"""Regions: groups, ids in any case, unknown ones passed through, omitted means anywhere."""

from __future__ import annotations

import pytest
from nebula.providers.runpod.regions import DATA_CENTERS, region_sets

from tests.support.runpod import RunPodWorld


def ids(*declared: str) -> tuple[str, ...]:
    (found,) = region_sets(declared)
    return found.ids


@pytest.mark.parametrize(
    ("word", "prefixes"),
    [("us", ("US-",)), ("eu", ("EU-", "EUR-")), ("ca", ("CA-",)), ("ap", ("AP-",)), ("oc", ("OC-",))],
)
def test_a_group_is_all_its_data_centers_and_nothing_else(word: str, prefixes: tuple[str, ...]) -> None:
    expected = {center for center in DATA_CENTERS if center.startswith(prefixes)}
    assert set(ids(word)) == set(ids(word.upper())) == expected
    assert expected


def test_the_groups_share_nothing_and_leave_nothing_out() -> None:
    groups = [ids(word) for word in ("us", "eu", "ca", "ap", "oc")]
    assert sorted(center for group in groups for center in group) == sorted(DATA_CENTERS)


@pytest.mark.parametrize(
    ("declared", "label", "expected"),
    [
        (["EU-RO-1"], "EU-RO-1", ("EU-RO-1",)),
        (["eu-ro-1"], "EU-RO-1", ("EU-RO-1",)),
        ([" Eu-Ro-1 "], "EU-RO-1", ("EU-RO-1",)),
        (["XX-NEW-9"], "XX-NEW-9", ("XX-NEW-9",)),
        (["mars"], "MARS", ("MARS",)),
        (["oc", "EU-RO-1", "oc-au-1"], "OC,EU-RO-1,OC-AU-1", ("OC-AU-1", "EU-RO-1")),
    ],
)
def test_an_entry_is_one_candidate(declared: list[str], label: str, expected: tuple[str, ...]) -> None:
    (found,) = region_sets(declared)
    assert (found.label, found.ids) == (label, expected)


def test_omitted_means_anywhere() -> None:
    (found,) = region_sets([])
    assert (found.label, found.ids) == ("any", ())


@pytest.mark.parametrize("declared", [[""], ["  "], ["", " "]])
def test_blank_words_never_widen_to_anywhere(declared: list[str]) -> None:
    assert region_sets(declared) == ()


def test_a_group_takes_in_what_the_live_catalog_names() -> None:
    world = RunPodWorld()
    world.account.market.centers["EU-XX-7"] = ("EU New", "EUROPE")
    before = world.provider.regions(["eu"])[0].ids
    assert "EU-XX-7" not in before
    world.provider.offerings()
    assert set(world.provider.regions(["eu"])[0].ids) == {*before, "EU-XX-7"}
    assert world.provider.regions([])[0].ids == ()


def test_residency_is_hard() -> None:
    """A pool for Europe is refused rather than served from elsewhere."""
    from nebula.providers.errors import NoCapacityError

    from tests.support.runpod import SXM, request

    world = RunPodWorld()
    (europe,) = world.provider.regions(["eu"])
    for center in europe.ids:
        world.account.market.set_stock(SXM, 0, center=center)
    with pytest.raises(NoCapacityError):
        world.provider.provision(request(place={"regions": europe.ids}))
    assert world.account.alive() == []
