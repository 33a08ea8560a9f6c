"""Engine only: memory ledgers, the simulated provider, the Kubernetes emulator over HTTP in a process of its own.

The shape of the published harness: N Pods on a provider whose instances run from their creation; Pods created,
bound, Ready; then all are deleted. Processor time is counted per process, so that the emulator's can be told apart.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nebula.domain.claim import claim_id_for

from tests.benchmark.children import CLUSTER, cluster, forwarder, pod_object
from tests.benchmark.crowd import Crowd, UnmeasuredError, Watch
from tests.benchmark.installation import TICK, installation
from tests.benchmark.processes import Child
from tests.benchmark.stages import DOWN, UP, Times, merge, summary

#: The run at which ticks come as often as in an installation; a smaller one gets as many ticks, not fewer.
REAL_TIME_PODS = 5000
MOST_DIVIDED = 30.0
QUIET_SECONDS = 60.0


def divisor_for(pods: int) -> float:
    """How many times faster than real the ticks come: a tick each 15 s at 5,000 Pods, each 1.5 s at 500."""
    return max(1.0, min(MOST_DIVIDED, REAL_TIME_PODS / pods))


class Engine:
    """The processes of one run. Use it as a context manager."""

    def __init__(self, divisor: float) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="nebula-bench-")
        self._divisor = divisor
        self.children: dict[str, Child] = {}
        self.url = ""

    def __enter__(self) -> Engine:
        log = str(Path(self._directory.name) / "functions.log")
        theirs, ours = multiprocessing.get_context("spawn").Pipe(duplex=False)
        try:
            self.children["kubernetes emulator"] = Child("kubernetes emulator", cluster)
            self.url = str(self.children["kubernetes emulator"].ask("url"))
            self.children["functions"] = Child("functions", installation, self.url, self._divisor, theirs, log)
            self.children["forwarder"] = Child("forwarder", forwarder, self.url, ours)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for child in reversed(self.children.values()):
            child.stop()
        self._directory.cleanup()

    def cpu(self) -> dict[str, float]:
        """Processor seconds so far, by process; ``observer`` is this one."""
        return {**{name: child.cpu() for name, child in self.children.items()}, "observer": time.process_time()}

    def ask(self, question: str) -> Any:
        """The installation's answer."""
        return self.children["functions"].ask(question)

    def check(self) -> None:
        """``ChildLostError`` when one of the processes is gone."""
        for child in self.children.values():
            child.require()


def run(pods: int, *, divisor: float | None = None) -> dict[str, Any]:
    """One run; the result as plain data. ``UnmeasuredError`` when it does not come to its end."""
    speed = divisor_for(pods) if divisor is None else divisor
    with Engine(speed) as engine:
        watch, crowd = Watch(engine.url), Crowd(engine.url)
        start, load = engine.cpu(), os.getloadavg()
        began = time.monotonic()
        uids = [crowd.create(pod_object(f"pod-{number}")) for number in range(pods)]
        watch.wait("Ready", pods, QUIET_SECONDS, engine.check)
        up_cpu, deleting = engine.cpu(), time.monotonic()
        for number in range(pods):
            crowd.delete(f"pod-{number}")
        watch.wait("Pod gone", pods, QUIET_SECONDS, engine.check)
        _settle(engine)
        down_cpu, moments, facts = engine.cpu(), engine.ask("moments"), engine.ask("facts")
        calls = engine.children["kubernetes emulator"].ask("calls")
    by_claim = {claim_id_for(CLUSTER, uid): uid for uid in uids}
    times = merge(watch.times, {by_claim[claim]: seen for claim, seen in moments.items() if claim in by_claim})
    return {
        "pods": pods,
        "tick_seconds": TICK.total_seconds() / speed,
        "load_average": round(load[0], 2),
        "up": _phase(times, UP, began, "created", pods, start, up_cpu),
        "down": _phase(times, DOWN, deleting, "deleting", pods, up_cpu, down_cpu),
        "kubernetes_calls": {f"{verb} {resource}": count for (verb, resource), count in sorted(calls.items())},
        **facts,
    }


def _settle(engine: Engine) -> None:
    """The ledger's last word comes after the Pod's."""
    until = time.monotonic() + QUIET_SECONDS
    while (left := engine.ask("left")) and time.monotonic() < until:
        time.sleep(0.05)
    if left:
        raise UnmeasuredError(f"{left} live claims or billed instances were left at the end")


def _phase(
    times: Times,
    stages: tuple[str, ...],
    began: float,
    start: str,
    pods: int,
    before: Mapping[str, float],
    after: Mapping[str, float],
) -> dict[str, Any]:
    used = {name: round(after[name] - before[name], 3) for name in after}
    last = max(seen[stages[-1]] for seen in times.values()) - began
    return {
        "seconds": round(last, 3),
        "pods_per_second": round(pods / last, 1),
        "stages": summary(times, stages, began, start),
        "cpu_seconds": used,
        "cpu_ms_per_pod": {name: round(seconds * 1000 / pods, 3) for name, seconds in used.items()},
        "emulator_share": round(used["kubernetes emulator"] / max(sum(used.values()), 1e-9), 3),
    }
