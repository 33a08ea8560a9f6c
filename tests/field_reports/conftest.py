"""The ledgers on moto, for reports in which the store is the point."""

from __future__ import annotations

from typing import Any

import pytest
from nebula.stores.dynamo_claims import DynamoClaimStore

from tests.support.moto_ledgers import aws_session, dynamodb

__all__ = ["aws_session", "dynamodb"]


@pytest.fixture(params=["memory", "dynamo"])
def ledgers(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The claims ledger for a ``World``: each twin in turn."""
    if request.param == "memory":
        return {}
    return {"claims": DynamoClaimStore(request.getfixturevalue("dynamodb"), "claims")}
