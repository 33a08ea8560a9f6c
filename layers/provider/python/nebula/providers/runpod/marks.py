"""The ownership mark in a pod's environment: RunPod has no tags that a create could set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nebula.domain.instance import Mark

INSTALLATION = "NEBULA_INSTALLATION"
CLAIM = "NEBULA_CLAIM"
ATTEMPT = "NEBULA_ATTEMPT"
RESERVED = frozenset({INSTALLATION, CLAIM, ATTEMPT})
"""Names that a Pod may not set."""


def as_environment(mark: Mark) -> dict[str, str]:
    """The mark as variables."""
    return {INSTALLATION: mark.installation, CLAIM: mark.claim_id, ATTEMPT: str(mark.attempt)}


def from_environment(environment: Mapping[str, Any]) -> Mark | None:
    """The mark, or None when it is not there whole: then the pod is a stranger's."""
    installation, claim_id = environment.get(INSTALLATION), environment.get(CLAIM)
    attempt = environment.get(ATTEMPT)
    if not (isinstance(installation, str) and installation and isinstance(claim_id, str) and claim_id):
        return None
    if not (isinstance(attempt, str) and attempt.isascii() and attempt.isdigit() and len(attempt) < 10):
        return None
    return Mark(installation=installation, claim_id=claim_id, attempt=int(attempt))
