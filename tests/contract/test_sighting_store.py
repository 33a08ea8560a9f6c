"""What every ledger of sightings does."""

from __future__ import annotations

from nebula.stores.sightings import KEEP, SightingStore

from tests.support.claims import NOW, SECOND


def test_the_first_sighting_stays(sightings: SightingStore) -> None:
    assert not sightings.known("orphan/i-1", NOW)
    assert sightings.first_seen("orphan/i-1", NOW) == NOW
    assert sightings.first_seen("orphan/i-1", NOW + SECOND) == NOW
    assert sightings.known("orphan/i-1", NOW)
    assert sightings.first_seen("orphan/i-2", NOW + SECOND) == NOW + SECOND


def test_what_is_forgotten_is_new_again(sightings: SightingStore) -> None:
    sightings.forget("orphan/i-1")
    sightings.first_seen("orphan/i-1", NOW)
    sightings.forget("orphan/i-1")
    assert not sightings.known("orphan/i-1", NOW)
    assert sightings.first_seen("orphan/i-1", NOW + SECOND) == NOW + SECOND


def test_a_sighting_older_than_a_day_is_new_again_although_its_row_is_still_there(sightings: SightingStore) -> None:
    sightings.first_seen("orphan/i-1", NOW)
    later = NOW + KEEP + SECOND
    assert sightings.known("orphan/i-1", NOW + KEEP - SECOND)
    assert not sightings.known("orphan/i-1", later)
    assert sightings.first_seen("orphan/i-1", later) == later
    assert sightings.known("orphan/i-1", later)


def test_a_note_tells_what_was_noted_before(sightings: SightingStore) -> None:
    assert sightings.note("key/runpod", "one", NOW) is None
    assert sightings.note("key/runpod", "one", NOW + KEEP * 3) == "one"
    assert sightings.note("key/runpod", "two", NOW + KEEP * 3) == "one"
    assert sightings.note("key/runpod", "two", NOW + KEEP * 3) == "two"
    assert sightings.note("key/simulated", "one", NOW) is None
    assert not sightings.known("key/runpod", NOW)


def test_a_note_is_recalled_without_being_changed(sightings: SightingStore) -> None:
    assert sightings.recall("clusters") is None
    sightings.note("clusters", "a,b", NOW)
    assert sightings.recall("clusters") == "a,b"
    assert sightings.recall("clusters") == "a,b"
