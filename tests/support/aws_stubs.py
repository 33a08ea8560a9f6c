"""AWS clients without a wire: botocore checks requests, and answers are scripted in order."""

from __future__ import annotations

from functools import cache
from typing import Any

import boto3
from botocore.config import Config
from botocore.stub import Stubber


def stubbed(service: str) -> tuple[Any, Stubber]:
    """A client and its script. The script is on."""
    factory: Any = _session().client
    client = factory(service, config=Config(retries={"total_max_attempts": 1}))
    stubber = Stubber(client)
    stubber.activate()
    return client, stubber


@cache
def _session() -> boto3.session.Session:
    """One for all tests: it keeps the service descriptions, which take longest to load."""
    return boto3.session.Session("testing", "testing", region_name="eu-central-1")
