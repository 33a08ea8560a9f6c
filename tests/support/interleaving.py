"""Several calls at once, one step at a time, in an order that a seed decides: concurrency that can be replayed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from threading import Event, Thread, current_thread
from typing import Any


class Interleaver:
    """Runs actors in threads of which only one moves at a time; ``pause`` is where another may go on.

    Deterministic for a seed: between two pauses an actor runs alone.
    """

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._turns: dict[str, Event] = {}
        self._finished: set[str] = set()
        self._back = Event()

    def watched(self, target: Any, methods: Iterable[str]) -> Any:
        """The object with a pause before each of these calls; what it calls on itself does not pause."""
        return _Watched(target, frozenset(methods), self.pause)

    def run(self, *actors: Callable[[], object]) -> None:
        """Run every actor to its end; the first error of any is raised."""
        errors: list[BaseException] = []
        threads = [
            Thread(target=self._act, args=(actor, errors), name=str(number)) for number, actor in enumerate(actors)
        ]
        self._turns = {thread.name: Event() for thread in threads}
        self._finished = set()
        for thread in threads:
            thread.start()
        alive = [thread.name for thread in threads]
        while alive:
            chosen = self._chance.choice(alive)
            self._back.clear()
            self._turns[chosen].set()
            self._back.wait(timeout=30)
            alive = [name for name in alive if name not in self._finished]
        for thread in threads:
            thread.join(timeout=30)
        if errors:
            raise errors[0]

    def pause(self) -> None:
        """Let somebody else go on; no effect outside ``run``."""
        turn = self._turns.get(current_thread().name)
        if turn is None:
            return
        turn.clear()
        self._back.set()
        turn.wait(timeout=30)

    def _act(self, actor: Callable[[], object], errors: list[BaseException]) -> None:
        name = current_thread().name
        self._turns[name].wait(timeout=30)
        try:
            actor()
        except BaseException as error:  # noqa: BLE001 - handed to the caller of run
            errors.append(error)
        finally:
            self._finished.add(name)
            self._back.set()


class _Watched:
    def __init__(self, target: Any, methods: frozenset[str], pause: Callable[[], None]) -> None:
        self._target = target
        self._methods = methods
        self._pause = pause

    def __getattr__(self, name: str) -> Any:
        if name in self._methods:
            self._pause()
        return getattr(self._target, name)
