"""What a provider call can end in, named by the caller's next move.

No message may hold a secret: adapters cut provider text to 512 characters and redact what they sent.
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum


class BlockScope(StrEnum):
    """How much of a provider a failure takes out of placement."""

    NOTHING = "nothing"
    CLAIM = "claim"
    CANDIDATE = "candidate"
    ACCELERATOR = "accelerator"
    PROVIDER = "provider"


class ProviderError(Exception):
    """Base of everything a provider call raises.

    ``code`` is the provider's own status or code (``400``, ``InsufficientInstanceCapacity``);
    ``failures`` one line per instance type tried inside the call.
    """

    blocks: BlockScope = BlockScope.NOTHING

    def __init__(self, message: str, *, code: str = "", failures: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.failures = failures


class NoCapacityError(ProviderError):
    """The provider says in its own words that it has none now: next candidate."""

    blocks = BlockScope.CANDIDATE


class QuotaExceededError(ProviderError):
    """The account's quota is used up: next candidate; the message names code and quota."""

    blocks = BlockScope.CANDIDATE


class UnsupportedAcceleratorError(ProviderError):
    """Not offered, or this account may not use it: next candidate."""

    blocks = BlockScope.ACCELERATOR


class AuthenticationError(ProviderError):
    """The key is refused: nothing works until a person acts. Next provider, alarm."""

    blocks = BlockScope.PROVIDER


class InsufficientBalanceError(ProviderError):
    """The account has no money: nothing works until a person acts. Next provider, alarm."""

    blocks = BlockScope.PROVIDER


class RateLimitedError(ProviderError):
    """Throttled: says nothing about the request. Same candidate after ``retry_after``."""

    def __init__(self, message: str, *, retry_after: timedelta, code: str = "", failures: tuple[str, ...] = ()) -> None:
        super().__init__(message, code=code, failures=failures)
        self.retry_after = retry_after


class RequestRefusedError(ProviderError):
    """Refused for reasons of this request: next candidate, for this claim only."""

    blocks = BlockScope.CLAIM


class ImagePullError(ProviderError):
    """The image cannot be pulled: the Pod must change. Stay gated, say why, do not retry."""


class InvalidWorkloadError(ProviderError):
    """The Pod asks what the provider cannot express: the Pod must change. Stay gated, say why."""


class ProviderUnavailableError(ProviderError):
    """Outcome unknown, something may exist: stop the walk, find by mark, retry."""


class ProviderUnconfiguredError(ProviderError):
    """The provider has no key here: it is skipped, and what it may hold is unknown."""


class CredentialInUseError(ProviderError):
    """The provider refuses to delete a registry credential that a workload still uses."""
