"""Fires a function's schedules at fixed intervals, one run at a time."""

from __future__ import annotations

import threading
import time

from local.deployment import FunctionSchedule
from local.runtime import Runtime


class Scheduler:
    """Calls one function with one schedule's event until stopped. The first call comes at once."""

    def __init__(self, schedule: FunctionSchedule, runtime: Runtime) -> None:
        self._schedule = schedule
        self._runtime = runtime
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=schedule.name, daemon=True)

    def start(self) -> None:
        """Start the clock."""
        self._thread.start()

    def stop(self) -> None:
        """Fire no more and wait for the run that is under way."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stopping.wait(max(0.0, due - time.monotonic())):
            self._runtime.invoke(self._schedule.event)
            # A run that took longer than the interval skips what it missed.
            while due <= time.monotonic():
                due += self._schedule.every
