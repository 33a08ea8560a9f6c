"""Child processes that live and die together.

Children are forked, so what the parent imported is there at once. A child whose parent is gone ends by
itself, also when the parent was killed outright.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from multiprocessing.context import ForkProcess
from types import FrameType

Child = Callable[[], None]

_CONTEXT = multiprocessing.get_context("fork")
_POLL_SECONDS = 0.1
_GRACE_SECONDS = 3.0


class ChildFailedError(Exception):
    """A child ended although it should run for ever."""


class Supervisor:
    """Runs children until told to stop. Start it from a process that has no threads."""

    def __init__(self, children: Mapping[str, Child]) -> None:
        self._children = dict(children)
        self._running: dict[str, ForkProcess] = {}
        self._stopping = threading.Event()

    def start(self) -> None:
        """Fork every child."""
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        for name, child in self._children.items():
            process = _CONTEXT.Process(target=_run, args=(child, parent), name=name, daemon=True)
            process.start()
            self._running[name] = process

    def wait(self) -> None:
        """Return when asked to stop; ``ChildFailedError`` when a child ends first."""
        while not self._stopping.wait(_POLL_SECONDS):
            for name, process in self._running.items():
                if not process.is_alive():
                    self.stop()
                    raise ChildFailedError(f"{name} ended with status {process.exitcode}")

    def stop(self) -> None:
        """End every child: politely first."""
        self._stopping.set()
        for process in self._running.values():
            process.terminate()
        until = time.monotonic() + _GRACE_SECONDS
        for process in self._running.values():
            process.join(max(0.0, until - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()

    def stop_on_signals(self) -> None:
        """SIGTERM and SIGINT end ``wait``."""

        def stop(_signal: int, _frame: FrameType | None) -> None:
            self._stopping.set()

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)


def _run(child: Child, parent: int) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # An interrupt at the terminal reaches the whole group; the parent decides when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    child()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_POLL_SECONDS)
    os._exit(1)
