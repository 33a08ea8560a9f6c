"""What each answer to a create means: status, ``detail``, error. Asked of the table, in process, and over HTTP."""

from __future__ import annotations

from nebula.providers.errors import (
    AuthenticationError,
    ImagePullError,
    InsufficientBalanceError,
    InvalidWorkloadError,
    NoCapacityError,
    ProviderError,
    ProviderUnavailableError,
    QuotaExceededError,
    RateLimitedError,
    RequestRefusedError,
    UnsupportedAcceleratorError,
)
from nebula.providers.runpod.errors import ContractError, CredentialMissingError, UndecidedForbiddenError

from tests.support.runpod import NO_CAPACITY

CREATE: list[tuple[int, str, type[ProviderError]]] = [
    # The literals that are documented or were seen.
    (400, NO_CAPACITY, NoCapacityError),
    (400, "There are no longer any instances available with the request specifications.", NoCapacityError),
    (400, "There are no longer any instances available with enough disk space.", NoCapacityError),
    (400, "There are no instances currently available", NoCapacityError),
    (400, "This machine does not have the resources to deploy your pod.", NoCapacityError),
    (400, "create pod: could not find any pods with required specifications", NoCapacityError),
    (400, "There are not enough free GPUs on the host machine to start this pod.", NoCapacityError),
    (400, "not enough free GPUs on the host machine", NoCapacityError),
    (400, "SUPPLY_CONSTRAINT", NoCapacityError),
    (400, "You must either provide a template id or pod configuration parameters", ContractError),
    (400, "request could not be processed", RequestRefusedError),
    (400, "mounts.network and mounts.persistent are mutually exclusive", RequestRefusedError),
    (401, "missing bearer token", AuthenticationError),
    (402, "", InsufficientBalanceError),
    (403, "access denied", AuthenticationError),
    (404, "resource not found", RequestRefusedError),
    (413, "", InvalidWorkloadError),
    (422, "Request validation failed.", ContractError),
    (400, "dockerArgs: key provided in request body which is not in input schema", ContractError),
    (429, "rate limit exceeded for the minute window", RateLimitedError),
    (500, "Something went wrong. Please try again later or contact support.", ProviderUnavailableError),
    (500, "could not find any pods with required specifications", ProviderUnavailableError),
    (502, "", ProviderUnavailableError),
    (503, "", ProviderUnavailableError),
    (504, "", ProviderUnavailableError),
    # Words that unknown texts are expected to hold.
    (400, "Insufficient funds to start this pod", InsufficientBalanceError),
    (400, "not enough credit for this configuration", InsufficientBalanceError),
    (400, "you have reached your spend limit of $80 per hour", QuotaExceededError),
    (400, "GPU quota exceeded", QuotaExceededError),
    (400, "image not available", ImagePullError),
    (400, "registry unauthorized: could not pull image", ImagePullError),
    (422, "manifest unknown", ImagePullError),
    (422, "container image ghcr.io/acme/x:9 was not found on its registry", ImagePullError),
    (422, "pull access denied for acme/x, repository does not exist or may require 'docker login'", ImagePullError),
    (404, "container registry auth reg_1 not found", CredentialMissingError),
    (400, "registry credential does not exist", CredentialMissingError),
    (400, 'invalid GPU type id "NVIDIA X"', UnsupportedAcceleratorError),
    (404, "gpu type not found", UnsupportedAcceleratorError),
    (403, "your API key lacks the scope pods:write", AuthenticationError),
    (403, "you have no permission to do this", AuthenticationError),
    (403, "read-only key", AuthenticationError),
    (403, "this account may not use the requested pool", UnsupportedAcceleratorError),
    (403, "not available in this data center", UnsupportedAcceleratorError),
    (403, "forbidden", UndecidedForbiddenError),
    (403, "", UndecidedForbiddenError),
    (408, "", ProviderUnavailableError),
    (409, "pod belongs to a cluster", RequestRefusedError),
    (410, "this API version is gone", ProviderUnavailableError),
]  # fmt: skip
