"""Child processes that answer questions over a pipe: what they did, and how much processor time it took."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

Body = Callable[..., Callable[[str], Any]]
_CONTEXT = multiprocessing.get_context("spawn")
_START_SECONDS = 60.0


class ChildLostError(Exception):
    """A child process ended, failed, or did not answer in time."""


def _serve(body: Body, arguments: tuple[Any, ...], pipe: Connection) -> None:
    answer = body(*arguments)
    pipe.send("ready")
    while True:
        question = pipe.recv()
        if question == "stop":
            # At once: threads in the middle of a call would be cut off one by one and complain about it.
            sys.stdout.flush()
            os._exit(0)
        pipe.send(time.process_time() if question == "cpu" else answer(question))


class Child:
    """One child. ``body`` sets it up in the child and returns what answers the questions there."""

    def __init__(self, name: str, body: Body, *arguments: Any) -> None:
        self.name = name
        self._pipe, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_serve, args=(body, arguments, theirs), name=name, daemon=True)
        self._process.start()
        theirs.close()
        self._receive(_START_SECONDS)

    def ask(self, question: str, seconds: float = 60.0) -> Any:
        """The child's answer. ``ChildLostError``."""
        self._pipe.send(question)
        return self._receive(seconds)

    def cpu(self) -> float:
        """Processor seconds that the child has used."""
        return float(self.ask("cpu"))

    def require(self) -> None:
        """``ChildLostError`` when it is gone."""
        if not self._process.is_alive():
            raise ChildLostError(f"{self.name} ended with status {self._process.exitcode}")

    def stop(self) -> None:
        """End it, politely first."""
        with contextlib.suppress(OSError):
            self._pipe.send("stop")
        self._process.join(2)
        if self._process.is_alive():
            self._process.terminate()
            self._process.join(5)

    def _receive(self, seconds: float) -> Any:
        if not self._pipe.poll(seconds):
            raise ChildLostError(f"{self.name} did not answer within {seconds:g} s")
        try:
            return self._pipe.recv()
        except EOFError:
            raise ChildLostError(f"{self.name} ended") from None
