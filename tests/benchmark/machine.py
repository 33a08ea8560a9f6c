"""Where and with what a report was made."""

from __future__ import annotations

import os
import platform
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = ("botocore", "pydantic", "pydantic-core", "requests", "urllib3", "aws-lambda-powertools", "moto")


def describe() -> dict[str, Any]:
    """Processor, memory, versions, load and date."""
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "machine": {
            "cpu": _cpu_model(),
            "architecture": platform.machine(),
            "cores": os.cpu_count(),
            "usable_cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "memory_gib": _memory(),
            "system": f"{platform.system()} {platform.release()}",
        },
        "versions": {"python": sys.version.split()[0], **{name: _version(name) for name in _PACKAGES}},
        "load_average": [round(load, 2) for load in os.getloadavg()],
    }


def yardstick() -> float:
    """Milliseconds of processor time for two million additions in a loop: how fast the machine is just now.

    A virtual machine beside busy ones takes two or three times as long for the same work, and no load average shows it.
    """
    took = []
    for _ in range(3):
        began, total = time.process_time(), 0
        for number in range(2_000_000):
            total += number
        took.append(time.process_time() - began)
    return round(sorted(took)[1] * 1000, 1)


def _cpu_model() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or "unknown"
    models = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return models[0] if models else platform.processor() or "unknown"


def _memory() -> float:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (ValueError, OSError):
        return 0.0


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"
