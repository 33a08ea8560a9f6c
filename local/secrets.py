"""Fill Parameter Store as an operator would: provider key, cluster, fingerprint key, all SecureString."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from local.deployment import Endpoints

if TYPE_CHECKING:
    from mypy_boto3_ssm import SSMClient


def fill(client: SSMClient, environment: Mapping[str, str], endpoints: Endpoints) -> None:
    """Put what is missing; what is there stays, so that a restarted worker finds the same fingerprint key."""
    cluster = {
        "server": endpoints.kubernetes,
        "ca": None,
        "auth": {"type": "bearer", "token": endpoints.cluster_token},
    }
    _put(client, f"{environment['NEBULA_PROVIDERS_PATH']}/runpod", endpoints.runpod_key)
    _put(client, f"{environment['NEBULA_CLUSTERS_PATH']}/{endpoints.cluster}", json.dumps(cluster))
    _put(client, environment["NEBULA_FINGERPRINT_KEY_PARAMETER"], secrets.token_hex(32))


def _put(client: SSMClient, name: str, value: str) -> None:
    try:
        client.put_parameter(Name=name, Value=value, Type="SecureString", Overwrite=False)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ParameterAlreadyExists":
            raise
