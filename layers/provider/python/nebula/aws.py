"""AWS clients of one process: built on first use, with explicit time-outs and bounded retries.

``AWS_ENDPOINT_URL`` (and ``AWS_ENDPOINT_URL_<SERVICE>``) is honoured by boto3 itself when a client is built.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING

import boto3
import botocore.session
from botocore.config import Config
from botocore.loaders import Loader

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_ssm import SSMClient

    from nebula.secret_references import SecretReader

CONNECT_TIMEOUT_SECONDS = 2
READ_TIMEOUT_SECONDS = 3
MAX_ATTEMPTS = 4
#: One call with all its tries, their pauses (at most a second each) aside.
LONGEST_CALL_SECONDS = (CONNECT_TIMEOUT_SECONDS + READ_TIMEOUT_SECONDS) * MAX_ATTEMPTS


def client_config() -> Config:
    """Time-outs and retries: one call ends within ``LONGEST_CALL_SECONDS`` and the pauses between its tries."""
    return Config(
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        read_timeout=READ_TIMEOUT_SECONDS,
        retries={"mode": "standard", "total_max_attempts": MAX_ATTEMPTS},
        tcp_keepalive=True,
    )


class DirectoryLoader(Loader):
    """Finds a service's description by its directory's name.

    Botocore looks into each of its four hundred directories, twice, before it builds the first client: a third of what
    the clients of a cold start take. A service that lacks what is asked for is still refused, when it is loaded.
    """

    def list_available_services(self, type_name: str) -> list[str]:  # noqa: ARG002 - whatever the kind of description
        """Every service that has a directory."""
        return self._directories

    @cached_property
    def _directories(self) -> list[str]:
        return [name for place in self.search_paths if os.path.isdir(place) for name in os.listdir(place)]


def new_session() -> boto3.session.Session:
    """A boto3 session that finds its services quickly."""
    core = botocore.session.get_session()
    core.register_component("data_loader", DirectoryLoader())
    return boto3.session.Session(botocore_session=core)


class AwsClients:
    """The clients that the control plane uses, one of each; safe to share between threads once built."""

    def __init__(self, session: boto3.session.Session | None = None) -> None:
        self._session = session or new_session()

    @cached_property
    def dynamodb(self) -> DynamoDBClient:
        """Ledgers."""
        return self._session.client("dynamodb", config=client_config())

    @cached_property
    def events(self) -> EventBridgeClient:
        """The bus."""
        return self._session.client("events", config=client_config())

    @cached_property
    def sqs(self) -> SQSClient:
        """The tick queue."""
        return self._session.client("sqs", config=client_config())

    @cached_property
    def ssm(self) -> SSMClient:
        """Provider keys and cluster access."""
        return self._session.client("ssm", config=client_config())

    @cached_property
    def secretsmanager(self) -> SecretReader:
        """Cluster access that is kept in Secrets Manager."""
        reader: SecretReader = self._session.client("secretsmanager", config=client_config())
        return reader
