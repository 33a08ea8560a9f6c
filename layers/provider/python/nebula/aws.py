"""AWS clients of one process: built on first use, with explicit time-outs and bounded retries.

``AWS_ENDPOINT_URL`` (and ``AWS_ENDPOINT_URL_<SERVICE>``) is honoured by botocore itself when a client is built.
The clients are botocore's own: boto3 would make the same ones, and import its transfer manager with them, a
seventh of a cold start.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import botocore.session
from botocore.config import Config

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


class ClientSource(Protocol):
    """What is used of ``boto3.session.Session``."""

    def client(self, service_name: Any, *, config: Config | None = None) -> Any:
        """A client of a service."""
        ...


class AwsClients:
    """The clients that the control plane uses, one of each; safe to share between threads once built.

    ``source`` makes them, where it is not to be this process's own environment.
    """

    def __init__(self, source: ClientSource | None = None) -> None:
        own: Callable[..., Any] = botocore.session.get_session().create_client
        self._make: Callable[..., Any] = own if source is None else source.client

    @cached_property
    def dynamodb(self) -> DynamoDBClient:
        """Ledgers."""
        made: DynamoDBClient = self._make("dynamodb", config=client_config())
        return made

    @cached_property
    def events(self) -> EventBridgeClient:
        """The bus."""
        made: EventBridgeClient = self._make("events", config=client_config())
        return made

    @cached_property
    def sqs(self) -> SQSClient:
        """The tick queue."""
        made: SQSClient = self._make("sqs", config=client_config())
        return made

    @cached_property
    def ssm(self) -> SSMClient:
        """Provider keys and cluster access."""
        made: SSMClient = self._make("ssm", config=client_config())
        return made

    @cached_property
    def secretsmanager(self) -> SecretReader:
        """Cluster access that is kept in Secrets Manager."""
        made: SecretReader = self._make("secretsmanager", config=client_config())
        return made
