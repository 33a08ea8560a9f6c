"""What the worker runs: functions with their environment, queues and schedules, as plain data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

ROOT = Path(__file__).resolve().parent.parent


class _Plain(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Endpoints(_Plain):
    """Where the servers listen, and what opens them. Everything is on loopback and made up per start."""

    aws: str
    runpod: str
    kubernetes: str
    runpod_key: str
    cluster_token: str
    cluster: str = "demo"
    region: str = "us-east-1"

    def client_environment(self) -> dict[str, str]:
        """Variables that point a process at the servers and away from any real account."""
        return {
            "AWS_ENDPOINT_URL": self.aws,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_REGION": self.region,
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
            "RUNPOD_API_BASE_URL": self.runpod,
            "POWERTOOLS_TRACE_DISABLED": "true",
        }


class QueueMapping(_Plain):
    """An event source mapping: a queue, and how many messages a call and how many calls at once it gives."""

    queue: str
    queue_url: str
    batch_size: int
    concurrency: int


class FunctionSchedule(_Plain):
    """A schedule: seconds between two runs, and the event of each."""

    name: str
    every: float
    event: dict[str, Any]


class Permission(_Plain):
    """One Allow statement of a role. ``sources`` are the bus sources it is limited to; empty means no limit."""

    actions: tuple[str, ...]
    resources: tuple[str, ...]
    sources: tuple[str, ...] = ()


class Function(_Plain):
    """One Lambda function. ``timeout`` is in seconds; ``app`` is relative to the checkout."""

    name: str
    logical_id: str
    app: str
    timeout: float
    environment: dict[str, str]
    mappings: tuple[QueueMapping, ...] = ()
    schedules: tuple[FunctionSchedule, ...] = ()
    permissions: tuple[Permission, ...] = ()


class Deployment(_Plain):
    """A deployed stack: its functions, the template's own outputs, and every queue by logical id."""

    stack: str
    functions: tuple[Function, ...]
    outputs: dict[str, str]
    queues: dict[str, str]

    def function(self, name: str) -> Function:
        """The function of that short name (``placement`` ...); KeyError for another."""
        for function in self.functions:
            if function.name == name:
                return function
        raise KeyError(name)
