"""Events on their way to the bus: gathered, sent ten at a time, kept until the bus has them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from threading import Condition
from threading import Event as Flag
from typing import NamedTuple

from nebula.events.details import DetailType, NodePoolDetail, PodDetail
from nebula.events.envelope import Event
from nebula.events.publisher import Publisher, PublishError

logger = logging.getLogger(__name__)
BATCH = 10
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0


class _Waiting(NamedTuple):
    event: Event
    since: float


Key = tuple[DetailType, str]


class Outbox:
    """Holds at most one event of a type for an object, so it cannot outgrow the cluster.

    ``linger`` (seconds) is how long a first event waits for company.
    """

    def __init__(
        self,
        publisher: Publisher,
        counted: Callable[[str, float], None],
        *,
        linger: float = 0.05,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._publisher = publisher
        self._counted = counted
        self._linger = linger
        self._monotonic = monotonic
        self._changed = Condition()
        self._waiting: dict[Key, _Waiting] = {}
        self._sending: Sequence[_Waiting] = ()
        self._taken = 0

    def put(self, events: Sequence[Event]) -> None:
        """Take events; one that waits already for the same object and type is replaced in its place."""
        if not events:
            return
        now = self._monotonic()
        with self._changed:
            for event in events:
                key = _key(event)
                earlier = self._waiting.get(key)
                self._waiting[key] = _Waiting(event, earlier.since if earlier else now)
            self._changed.notify()

    def __len__(self) -> int:
        with self._changed:
            return len(self._waiting) + len(self._sending)

    def lag(self) -> float:
        """Age of the oldest event that the bus does not have, in seconds."""
        with self._changed:
            oldest = min((item.since for item in [*self._waiting.values(), *self._sending]), default=None)
        return 0.0 if oldest is None else self._monotonic() - oldest

    def run(self, stop: Flag) -> None:
        """Send until told to stop, then once more what is left.

        Pauses grow only while the bus takes nothing: one that refuses a few entries of each call is not waited for.
        """
        pause = _FIRST_PAUSE
        while not stop.is_set():
            with self._changed:
                if not self._waiting:
                    self._changed.wait(0.5)
            if self._linger and len(self) < BATCH:
                stop.wait(self._linger)
            if self.send():
                pause = _FIRST_PAUSE
            else:
                pause = _FIRST_PAUSE if self._taken else pause
                stop.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
        while len(self) and self.send():
            pass

    def send(self) -> bool:
        """Send one batch; False when some of it failed and waits again."""
        with self._changed:
            keys = list(self._waiting)[:BATCH]
            self._sending = [self._waiting.pop(key) for key in keys]
        if not self._sending:
            return True
        unsent: Sequence[Event] = ()
        try:
            self._publisher.publish([item.event for item in self._sending])
        except PublishError as error:
            unsent = error.unsent or [item.event for item in self._sending]
            logger.warning("events wait: %s", error)
        self._settle(unsent)
        return not unsent

    def _settle(self, unsent: Sequence[Event]) -> None:
        kept = {_key(event) for event in unsent}
        with self._changed:
            back = {_key(item.event): item for item in self._sending if _key(item.event) in kept}
            # What failed goes first again, unless a newer event of the same key came meanwhile.
            self._waiting = {key: item for key, item in back.items() if key not in self._waiting} | self._waiting
            self._taken = sent = len(self._sending) - len(back)
            self._sending = ()
        self._counted("events_sent", sent)
        self._counted("events_failed", len(back))


def _key(event: Event) -> Key:
    detail = event.detail
    if isinstance(detail, PodDetail):
        return event.detail_type, detail.uid
    return event.detail_type, detail.name if isinstance(detail, NodePoolDetail) else ""
