"""Processor time of processes that are not ours to ask, from ``/proc``."""

from __future__ import annotations

import os
from pathlib import Path


class UnreadableError(Exception):
    """This system does not tell what a process used."""


def children(parent: int) -> list[int]:
    """The living children of a process, in the order in which they were made."""
    return sorted(pid for pid, (ppid, _) in _all().items() if ppid == parent)


def seconds(pid: int) -> float:
    """Processor seconds of one process, and of those of its children that have ended and were waited for."""
    known = _read(pid)
    if known is None:
        raise UnreadableError(f"no such process: {pid}")
    return known[1]


def _all() -> dict[int, tuple[int, float]]:
    try:
        pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    except OSError:
        raise UnreadableError("there is no /proc here") from None
    if not pids:
        raise UnreadableError("/proc shows no processes")
    return {pid: known for pid in pids if (known := _read(pid)) is not None}


def _read(pid: int) -> tuple[int, float] | None:
    """Parent and processor seconds; None when it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    # The name is in brackets and may hold anything, brackets too.
    fields = text.rpartition(")")[2].split()
    return int(fields[1]), sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")
