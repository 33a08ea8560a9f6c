"""The promises of ``test_credential_machine`` over the DynamoDB ledgers, with the template's tables and indexes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
from hypothesis import HealthCheck, settings
from moto import mock_aws
from nebula.aws import AwsClients
from nebula.domain.claim import Claim
from nebula.stores.dynamo_claims import DynamoClaimStore
from nebula.stores.dynamo_credentials import DynamoCredentialStore

from tests.property.test_credential_machine import Credentials
from tests.support.tables import create_tables

#: Loaded once: the service descriptions take longer than an example.
SESSION = boto3.session.Session("testing", "testing", region_name="eu-central-1")


class RememberedClaims(DynamoClaimStore):
    """The claims table, and every claim that was ever made in it. moto's index never lags."""

    lags = False

    def __init__(self, client: Any, table: str) -> None:
        super().__init__(client, table)
        self._ids: list[str] = []

    def create(self, claim: Claim, **limit: Any) -> Claim:
        written = super().create(claim, **limit)
        self._ids.append(claim.claim_id)
        return written

    def all(self) -> Iterator[Claim]:
        """Every claim, ended ones included."""
        found = (self.get(claim_id) for claim_id in self._ids)
        return (claim for claim in found if claim is not None)


class DynamoCredentials(Credentials):
    """The same rules, promises and crashes."""

    def ledgers(self) -> Any:
        self.aws = mock_aws()
        self.aws.start()
        client = AwsClients(SESSION).dynamodb
        create_tables(client)
        self.world.credentials = DynamoCredentialStore(client, "credentials")  # type: ignore[assignment]
        return RememberedClaims(client, "claims")

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self.aws.stop()


TestDynamoCredentials = DynamoCredentials.TestCase
TestDynamoCredentials.settings = settings(
    max_examples=6,
    stateful_step_count=15,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
