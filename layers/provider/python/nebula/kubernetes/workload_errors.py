"""Why a Pod cannot be translated: for good, or until something appears in its namespace."""

from __future__ import annotations


class InvalidPodError(ValueError):
    """The Pod must change. ``reason`` is CamelCase; the message names fields and shows no secret."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class WaitingForReferenceError(Exception):
    """A Secret, ConfigMap or key that the Pod needs is not there, or may not be read (yet).

    Not final: the Pod stays gated and is looked at again, as a kubelet would retry
    ``CreateContainerConfigError``.
    """

    reason = "WaitingForReference"
