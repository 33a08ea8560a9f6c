"""What every ledger of sightings does."""

from __future__ import annotations

from nebula.stores.sightings import SightingStore

from tests.support.claims import NOW, SECOND


def test_the_first_sighting_stays(sightings: SightingStore) -> None:
    assert not sightings.known("orphan/i-1")
    assert sightings.first_seen("orphan/i-1", NOW) == NOW
    assert sightings.first_seen("orphan/i-1", NOW + SECOND) == NOW
    assert sightings.known("orphan/i-1")
    assert sightings.first_seen("orphan/i-2", NOW + SECOND) == NOW + SECOND


def test_what_is_forgotten_is_new_again(sightings: SightingStore) -> None:
    sightings.forget("orphan/i-1")
    sightings.first_seen("orphan/i-1", NOW)
    sightings.forget("orphan/i-1")
    assert not sightings.known("orphan/i-1")
    assert sightings.first_seen("orphan/i-1", NOW + SECOND) == NOW + SECOND
