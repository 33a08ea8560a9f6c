"""Kubernetes' two time formats: ``metav1.Time`` (seconds) and ``metav1.MicroTime`` (six digits)."""

from __future__ import annotations

from datetime import UTC, datetime


def format_time(moment: datetime) -> str:
    """RFC 3339 in whole seconds, as in ``lastTransitionTime``."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(moment: datetime) -> str:
    """RFC 3339 with exactly six fraction digits, which a Lease's decoder insists on."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
