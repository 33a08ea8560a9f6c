"""RunPod's data centers and the words that stand for several of them.

The ids are those of ``GET /v2/catalog/datacenters`` on 2026-09-29. RunPod opens and closes data
centers, so ids are never checked against this list: it only expands groups, together with what the
live catalog names. The API knows continents, no countries; the groups go by the id's first part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nebula.providers.base import RegionSet

DATA_CENTERS: tuple[str, ...] = (
    *(f"US-{one}" for one in ("CA-2", "CO-1", "GA-2", "IL-1", "KS-2", "MD-1", "MO-1", "MO-2", "NC-1", "NC-2")),
    *(f"US-{one}" for one in ("NE-1", "PA-1", "TX-3", "TX-4", "WA-1", "WA-2")),
    *(f"CA-{one}" for one in ("MTL-1", "MTL-3", "MTL-4")),
    *(f"EU-{one}" for one in ("CZ-1", "FR-1", "NL-1", "RO-1", "SE-1")),
    *(f"EUR-{one}" for one in ("IS-1", "IS-2", "IS-3", "IS-4", "IS-5", "NO-1", "NO-2")),
    *("AP-IN-1", "AP-JP-1", "OC-AU-1"),
)

GROUPS = {
    "US": ("US-",),
    "EU": ("EU-", "EUR-"),  # EUR- is Iceland and Norway: of the EEA, not of the Union
    "CA": ("CA-",),
    "AP": ("AP-",),
    "OC": ("OC-",),
}

ANYWHERE = RegionSet(label="any")


def region_sets(declared: Sequence[str], known: Iterable[str] = ()) -> tuple[RegionSet, ...]:
    """One set for a pool entry: groups expanded, ids upper-cased, unknown ones passed through.

    Nothing declared means anywhere. Blank words never widen to anywhere: they give no set at all.
    """
    if not declared:
        return (ANYWHERE,)
    centers = sorted({*DATA_CENTERS, *known})
    ids: dict[str, None] = {}
    words = [word.strip().upper() for word in declared]
    for word in words:
        prefixes = GROUPS.get(word)
        members = [word] if prefixes is None else [center for center in centers if center.startswith(prefixes)]
        ids.update(dict.fromkeys(member for member in members if member))
    if not ids:
        return ()
    return (RegionSet(label=",".join(dict.fromkeys(word for word in words if word)), ids=tuple(ids)),)
