"""Chance that is the same whenever a generated example runs again, and another in each test that is not generated."""

from __future__ import annotations

import random


def repeatable() -> random.Random:
    """A source seeded from ``random``, which Hypothesis seeds anew before each example.

    UIDs decide jitters, names and orders: were they others at each run, the same choices would lead to other lives,
    and a failing example could neither be repeated nor made smaller.
    """
    return random.Random(random.getrandbits(64))
