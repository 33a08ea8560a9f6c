"""Both twins of each ledger; the DynamoDB ones on moto, in process, with the template's tables."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from nebula.stores.blocks import BlockStore
from nebula.stores.claims import ClaimStore
from nebula.stores.credentials import CredentialStore
from nebula.stores.dynamo_blocks import DynamoBlockStore
from nebula.stores.dynamo_claims import DynamoClaimStore
from nebula.stores.dynamo_credentials import DynamoCredentialStore
from nebula.stores.dynamo_sightings import DynamoSightingStore
from nebula.stores.memory_blocks import MemoryBlockStore
from nebula.stores.memory_claims import MemoryClaimStore
from nebula.stores.memory_credentials import MemoryCredentialStore
from nebula.stores.memory_sightings import MemorySightingStore
from nebula.stores.sightings import SightingStore

from tests.support.kubernetes_api import Api
from tests.support.kubernetes_targets import TARGETS, running
from tests.support.moto_ledgers import aws_session, dynamodb

__all__ = ["aws_session", "dynamodb"]


@pytest.fixture(scope="module", params=TARGETS)
def api(request: pytest.FixtureRequest) -> Iterator[Api]:
    """Each Kubernetes API in turn, one for a module of tests."""
    with running(request.param) as target:
        yield target


@pytest.fixture(params=["memory", "dynamo"])
def claims(request: pytest.FixtureRequest) -> ClaimStore:
    """Each twin of the claims ledger in turn."""
    if request.param == "memory":
        return MemoryClaimStore()
    return DynamoClaimStore(request.getfixturevalue("dynamodb"), "claims")


@pytest.fixture(params=["memory", "dynamo"])
def blocks(request: pytest.FixtureRequest) -> BlockStore:
    """Each twin of the blocks ledger in turn."""
    if request.param == "memory":
        return MemoryBlockStore()
    return DynamoBlockStore(request.getfixturevalue("dynamodb"), "blocks")


@pytest.fixture(params=["memory", "dynamo"])
def credentials(request: pytest.FixtureRequest) -> CredentialStore:
    """Each twin of the credentials ledger in turn."""
    if request.param == "memory":
        return MemoryCredentialStore()
    return DynamoCredentialStore(request.getfixturevalue("dynamodb"), "credentials")


@pytest.fixture(params=["memory", "dynamo"])
def sightings(request: pytest.FixtureRequest) -> SightingStore:
    """Each twin of the sightings in turn."""
    if request.param == "memory":
        return MemorySightingStore()
    return DynamoSightingStore(request.getfixturevalue("dynamodb"), "blocks")
