"""boto3 clients of the local moto, whatever the calling process's environment says."""

from __future__ import annotations

from typing import Any

import boto3

from local.deployment import Endpoints


def client(service: str, endpoints: Endpoints) -> Any:
    """A client of one service, used as an operator: no role limits it."""
    session = boto3.session.Session(
        aws_access_key_id="local",
        aws_secret_access_key="local",  # noqa: S106 - moto takes any
        region_name=endpoints.region,
    )
    made: Any = session.client(service, endpoint_url=endpoints.aws)  # type: ignore[call-overload]
    made.operator = True
    return made
