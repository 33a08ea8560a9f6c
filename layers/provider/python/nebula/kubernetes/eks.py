"""Bearer tokens for EKS, minted in this process: no ``eks get-token``, no AWS call, no IAM permission.

The token is ``k8s-aws-v1.`` and the unpadded base64url of a presigned STS ``GetCallerIdentity`` whose signed headers
hold the cluster's name. Format: https://github.com/kubernetes-sigs/aws-iam-authenticator (README, ``pkg/token``).
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import timedelta
from typing import Final

import botocore.session
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError
from pydantic import SecretStr

from nebula.clock import Clock
from nebula.kubernetes.api import ClusterUnavailableError
from nebula.kubernetes.cached_token import CachedToken

#: The server accepts a token for 15 minutes after its date; two are left for clocks and for the call itself.
LIFETIME: Final = timedelta(minutes=13)
_PREFIX: Final = "k8s-aws-v1."
_EXPIRES_SECONDS: Final = 60


class EksToken(CachedToken):
    """A token source for one EKS cluster.

    ``credentials`` gives what to sign with, at each minting: a Lambda's credentials change while it lives.
    Tokens never outlive them, so a 401 (``renew``) mints anew from fresh credentials.
    """

    def __init__(
        self, cluster: str, region: str, clock: Clock, credentials: Callable[[], Credentials | None] | None = None
    ) -> None:
        super().__init__(clock, LIFETIME)
        self._cluster = cluster
        self._region = region
        self._credentials = credentials or _default_credentials

    def fetch(self) -> SecretStr:
        """A new token. ClusterUnavailableError without AWS credentials."""
        try:
            credentials = self._credentials()
            if credentials is None:
                raise ClusterUnavailableError("no AWS credentials to sign the cluster token with")
            return mint(self._cluster, self._region, credentials)
        except BotoCoreError as error:
            raise ClusterUnavailableError(f"the cluster token cannot be signed: {type(error).__name__}") from None


def mint(cluster: str, region: str, credentials: Credentials) -> SecretStr:
    """One token. The date in it is the machine's own: botocore signs with the system clock."""
    request = AWSRequest(
        method="GET",
        url=f"https://sts.{region}.{_domain(region)}/",
        params={"Action": "GetCallerIdentity", "Version": "2011-06-15"},
        headers={"x-k8s-aws-id": cluster},
    )
    SigV4QueryAuth(credentials, "sts", region, expires=_EXPIRES_SECONDS).add_auth(request)
    encoded = base64.urlsafe_b64encode(str(request.url).encode()).decode().rstrip("=")
    return SecretStr(_PREFIX + encoded)


def _domain(region: str) -> str:
    return "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"


def _default_credentials() -> Credentials | None:
    found: Credentials | None = botocore.session.get_session().get_credentials()
    return found
