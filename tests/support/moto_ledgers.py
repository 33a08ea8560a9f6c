"""Fixtures of the ledgers' tables on moto, for the folders whose ``conftest`` imports them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import boto3
import pytest
from moto import mock_aws
from nebula.aws import AwsClients

from tests.support.tables import create_tables

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

__all__ = ["aws_session", "dynamodb"]


@pytest.fixture(scope="session")
def aws_session() -> boto3.session.Session:
    """One for all tests: it keeps the service descriptions, which take longest to load."""
    return boto3.session.Session("testing", "testing", region_name="eu-central-1")


@pytest.fixture
def dynamodb(aws_session: boto3.session.Session) -> Iterator[DynamoDBClient]:
    """A client of an empty account that has the ledgers' tables."""
    with mock_aws():
        client = AwsClients(aws_session).dynamodb
        create_tables(client)
        yield client
