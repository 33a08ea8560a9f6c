"""docs/data-model.md names every attribute that rows have, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from nebula.domain.claim import Claim
from nebula.domain.credential import Credential
from nebula.stores.blocks import Block
from pydantic import BaseModel

PAGE = (Path(__file__).parents[2] / "docs" / "data-model.md").read_text(encoding="utf-8")
DERIVED = {
    "Claims table": {
        "former_credential_key",
        "committed_per_hour",
        "provider",
        "instance_id",
        "live_cluster",
        "due_partition",
        "expires_at",
    },
    "Blocks table": {"block_key", "expires_at_epoch"},
    "Credentials table": {"credential", "generation", "forget_at_epoch"},
}


def attributes(heading: str) -> set[str]:
    """Names in the first column of the section's attribute table."""
    section = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    table = section.split("| attribute | type | holds |\n|---|---|---|\n", 1)[1].split("\n\n", 1)[0]
    return {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])}


@pytest.mark.parametrize(
    ("heading", "model"), [("Claims table", Claim), ("Blocks table", Block), ("Credentials table", Credential)]
)
def test_the_page_names_what_rows_hold(heading: str, model: type[BaseModel]) -> None:
    assert attributes(heading) == set(model.model_fields) | DERIVED[heading] | {"write_id"}
