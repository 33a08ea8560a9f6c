"""The local stack: the functions on the real template over moto, the RunPod simulator and the Kubernetes emulator.

Reported without a limit: more than half of its processor time is the simulators'. The share is given, so that nobody
takes the figure for the product's.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from local import run_files
from local.deployment import ROOT
from local.run_files import ServersFile, WorkerFile
from local.runpod_console import RunPodConsole
from local.stack import Stack
from tests.benchmark import processor
from tests.benchmark.children import pod_object, pool_object
from tests.benchmark.crowd import Crowd, UnmeasuredError, Watch
from tests.benchmark.stages import summary

DIRECTORY = ROOT / ".local" / "bench"
#: As in an installation. A look at hundreds of claims takes moto seconds; with shortened time-outs calls would fail
#: that would not fail on AWS.
DIVISOR = 1.0
QUIET_SECONDS = 600.0
UP = ("created", "released", "bound", "Running", "Ready")
DOWN = ("deleting", "Pod gone")
_POOLS = "/apis/nebula.inftyai.com/v1alpha1/nodepools"
_SERVERS = ("aws", "runpod", "kubernetes")
_OTHERS = ("front", "forwarder")


def run(pods: int) -> dict[str, Any]:
    """One run; ``UnmeasuredError`` when it does not come to its end."""
    with Stack(DIRECTORY, divisor=DIVISOR) as stack:
        endpoints = stack.endpoints
        console = RunPodConsole(endpoints)
        console.set("timing", provisioning=0.0, starting=0.0, ports=0.0)
        watch = Watch(endpoints.kubernetes, endpoints.cluster_token)
        crowd = Crowd(endpoints.kubernetes, endpoints.cluster_token)
        crowd.create(pool_object("runpod"), _POOLS)
        processes = _processes(stack)
        start, load, began = _used(processes), os.getloadavg(), time.monotonic()
        for number in range(pods):
            crowd.create(pod_object(f"pod-{number}"))
        watch.wait("Ready", pods, QUIET_SECONDS)
        middle, deleting = _used(processes), time.monotonic()
        for number in range(pods):
            crowd.delete(f"pod-{number}")
        watch.wait("Pod gone", pods, QUIET_SECONDS)
        end, times = _used(processes), watch.times
        left = len(console.alive())
    if left:
        raise UnmeasuredError(f"{left} instances were left at the end")
    used = {name: round(end[name] - start[name], 2) for name in end}
    emulators = sum(used[name] for name in _SERVERS)
    return {
        "pods": pods,
        "tick_seconds": 15 / DIVISOR,
        "load_average": round(load[0], 2),
        "up": _phase(times, UP, began, "created", pods, start, middle),
        "down": _phase(times, DOWN, deleting, "deleting", pods, middle, end),
        "cpu_seconds": used,
        "cpu_summary": ", ".join(f"{name} {seconds:g} s" for name, seconds in used.items()),
        "emulator_share": round(emulators / max(sum(used.values()), 1e-9), 3),
    }


def _processes(stack: Stack) -> dict[str, int]:
    """Every process of the stack by name; the supervisors start their children in a known order."""
    servers = run_files.read(stack.directory, ServersFile)
    worker = run_files.read(stack.directory, WorkerFile)
    if servers is None or worker is None:
        raise UnmeasuredError("the stack does not run")
    functions = tuple(function.name for function in worker.deployment.functions)
    found: dict[str, int] = {}
    for parent, names in ((servers.pid, _SERVERS), (worker.pid, (*functions, *_OTHERS))):
        pids = processor.children(parent)
        if len(pids) != len(names):
            raise UnmeasuredError(f"{len(names)} processes were expected below {parent}, {len(pids)} are there")
        found |= dict(zip(names, pids, strict=True))
    return found


def _used(processes: Mapping[str, int]) -> dict[str, float]:
    return {name: processor.seconds(pid) for name, pid in processes.items()}


def _phase(
    times: Mapping[str, Mapping[str, float]],
    stages: tuple[str, ...],
    began: float,
    first: str,
    pods: int,
    before: Mapping[str, float],
    after: Mapping[str, float],
) -> dict[str, Any]:
    last = max(seen[stages[-1]] for seen in times.values()) - began
    return {
        "seconds": round(last, 3),
        "pods_per_second": round(pods / last, 2),
        "stages": summary(times, stages, began, first),
        "cpu_ms_per_pod": {name: round((after[name] - before[name]) * 1000 / pods, 2) for name in after},
    }
