"""When each Pod reached each stage, and what that comes to: p50, p95 and the last.

Times are seconds of one monotonic clock, which the processes of one machine share.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

UP = ("created", "gated seen", "placed", "instance", "released", "bound", "Running", "Ready")
DOWN = ("delete seen", "terminating", "gone", "Pod gone")
Times = dict[str, dict[str, float]]


def nearest_rank(values: Sequence[float], percent: float) -> float:
    """The nearest-rank percentile, as the published harness has it. ValueError without values."""
    if not values:
        raise ValueError("no percentile of nothing")
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def merge(*sources: Mapping[str, Mapping[str, float]]) -> Times:
    """One table of several observers' times by uid; where two saw the same, the earlier counts."""
    merged: Times = {}
    for source in sources:
        for uid, stages in source.items():
            known = merged.setdefault(uid, {})
            for stage, at in stages.items():
                known[stage] = min(at, known.get(stage, at))
    return merged


def summary(
    times: Mapping[str, Mapping[str, float]], stages: Iterable[str], began: float, start: str
) -> list[dict[str, object]]:
    """Per stage: how many Pods reached it, p50/p95/max since each Pod's own ``start`` stage, and the last of all.

    ``last_s`` counts from ``began``, the moment before the first request of the run.
    """
    lines: list[dict[str, object]] = []
    for stage in stages:
        reached = [(t[stage] - began, t[stage] - t.get(start, began)) for t in times.values() if stage in t]
        line: dict[str, object] = {"stage": stage, "pods": len(reached)}
        if reached:
            own = [since for _, since in reached]
            line |= {
                "p50_s": round(nearest_rank(own, 50), 3),
                "p95_s": round(nearest_rank(own, 95), 3),
                "max_s": round(max(own), 3),
                "last_s": round(max(at for at, _ in reached), 3),
            }
        lines.append(line)
    return lines
