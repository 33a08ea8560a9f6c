"""Ages as kubectl writes them: at most two units, fewer the older something is."""

from __future__ import annotations

from datetime import timedelta


def human(passed: timedelta) -> str:
    """``90s``, ``3m5s``, ``45m``, ``5h12m``, ``30h``, ``3d4h``, ``28d``; a negative one is ``0s`` or ``<invalid>``."""
    seconds = int(passed.total_seconds())
    if seconds < 0:
        return "0s" if seconds >= -1 else "<invalid>"
    if seconds < 120:
        return f"{seconds}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    return _two(days, "d", hours % 24, "h") if hours < 192 else f"{days}d"


def _two(first: int, unit: str, second: int, smaller: str) -> str:
    return f"{first}{unit}{second}{smaller}" if second else f"{first}{unit}"
