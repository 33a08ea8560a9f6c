"""Names of rented instances: ``<namespace>-<pod>-<8 hex>``, shortened to the provider's limit.

A name is for people. Ownership is decided by the mark alone.
"""

from __future__ import annotations

_DIGITS = 8


def instance_name(namespace: str, pod_name: str, claim_id: str, limit: int) -> str:
    """A name of at most ``limit`` characters that keeps the claim's eight digits.

    Shortening cuts the readable part, never the digits, so that two long names stay apart. ``limit``
    below ten is a provider's mistake: ValueError.
    """
    digits = claim_id[:_DIGITS]
    room = limit - len(digits) - 1
    if room < 1:
        raise ValueError(f"a name limit of {limit} leaves no room")
    readable = f"{namespace}-{pod_name}"[:room].rstrip("-.")
    return f"{readable}-{digits}"
