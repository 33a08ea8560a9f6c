"""The bus, the queues and Lambda's event source mappings in memory, as ``template.yaml`` describes them.

Nothing is decided here: which rule feeds which queue, batch sizes and concurrency are read from the template.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nebula.clock import Clock
from nebula.events.entries import envelope_of
from nebula.events.envelope import Event
from nebula.events.memory import as_sqs_record

from local.template import Template

Envelope = dict[str, Any]
Handler = Callable[[Envelope], Mapping[str, Any]]
Tap = Callable[[Envelope], None]


@dataclass(frozen=True)
class Mapping_:
    """An event source mapping: which function a queue wakes, with how many messages, how often at once."""

    function: str
    queue: str
    batch_size: int
    concurrency: int


@dataclass(frozen=True)
class Rule:
    """A rule of the installation's bus. Empty ``phases``: the detail does not matter."""

    sources: frozenset[str]
    types: frozenset[str]
    phases: frozenset[str]
    queue: str

    def admits(self, envelope: Envelope) -> bool:
        """Whether the rule sends an event on."""
        known = envelope["source"] in self.sources and envelope["detail-type"] in self.types
        return known and (not self.phases or envelope["detail"].get("phase") in self.phases)


def rules(template: Template) -> list[Rule]:
    """The rules on the installation's own bus."""
    found = []
    for resource in template["Resources"].values():
        if resource["Type"] != "AWS::Events::Rule" or "EventBusName" not in resource["Properties"]:
            continue
        pattern = resource["Properties"]["EventPattern"]
        (target,) = resource["Properties"]["Targets"]
        phases = frozenset(pattern.get("detail", {}).get("phase", ()))
        types = frozenset(pattern["detail-type"])
        found.append(Rule(frozenset(pattern["source"]), types, phases, target["Arn"]["Fn::GetAtt"][0]))
    return found


def mappings(template: Template) -> list[Mapping_]:
    """Every function's queues."""
    found = []
    for resource in template["Resources"].values():
        if resource["Type"] != "AWS::Serverless::Function":
            continue
        properties = resource["Properties"]
        function = properties["CodeUri"].strip("/").rsplit("/", 1)[1]
        for source in properties.get("Events", {}).values():
            if source["Type"] != "SQS":
                continue
            given = source["Properties"]
            queue, calls = given["Queue"]["Fn::GetAtt"][0], given["ScalingConfig"]["MaximumConcurrency"]
            found.append(Mapping_(function, queue, given["BatchSize"], calls))
    return found


class Queue:
    """One queue and the calls that it makes. A message that fails comes again after ``again`` seconds."""

    def __init__(self, name: str, *, again: float = 1.0) -> None:
        self.name = name
        self.failures = 0
        self.calls = 0
        self.messages = 0
        self._again = again
        self._ids = itertools.count()
        self._changed = threading.Condition()
        self._waiting: deque[tuple[float, Envelope]] = deque()
        self._held = 0

    def put(self, envelope: Envelope, *, delay: float = 0.0) -> None:
        """Send a message, visible after ``delay`` seconds."""
        with self._changed:
            self._waiting.append((time.monotonic() + delay, envelope))
            self._changed.notify()

    @property
    def idle(self) -> bool:
        """Nothing waits and no call runs."""
        with self._changed:
            return not self._waiting and not self._held

    def serve(self, handler: Handler, batch_size: int, calls: int) -> None:
        """Call the handler from ``calls`` threads, for ever."""
        for number in range(calls):
            target = threading.Thread(
                target=self._work, args=(handler, batch_size), name=f"{self.name} {number}", daemon=True
            )
            target.start()

    def _work(self, handler: Handler, batch_size: int) -> None:
        while True:
            batch = self._take(batch_size)
            records = [as_sqs_record(envelope, message_id=str(number)) for number, envelope in enumerate(batch)]
            answer = handler({"Records": records})
            failed = {int(item["itemIdentifier"]) for item in answer.get("batchItemFailures", ())}
            for number in failed:
                self.put(batch[number], delay=self._again)
            with self._changed:
                self._held -= len(batch)
                self.calls += 1
                self.messages += len(batch)
                self.failures += len(failed)

    def _take(self, limit: int) -> Sequence[Envelope]:
        with self._changed:
            while not (batch := self._ripe(limit)):
                self._changed.wait(0.1 if self._waiting else None)
            self._held += len(batch)
            return batch

    def _ripe(self, limit: int) -> list[Envelope]:
        """The first messages whose delay is over; the others go to the back of the queue."""
        now = time.monotonic()
        batch: list[Envelope] = []
        for _ in range(len(self._waiting)):
            if len(batch) == limit:
                break
            at, envelope = self._waiting.popleft()
            if at <= now:
                batch.append(envelope)
            else:
                self._waiting.append((at, envelope))
        return batch


class Bus:
    """Routes what is published to the queues; ``tap`` sees every event first, as a log of the bus would."""

    def __init__(self, template: Template, clock: Clock, tap: Tap) -> None:
        self._rules = rules(template)
        self._clock = clock
        self._tap = tap
        self.queues = {mapping.queue: Queue(mapping.queue) for mapping in mappings(template)}
        self.counts: Counter[str] = Counter()

    def publish(self, events: Sequence[Event]) -> None:
        """See ``Publisher``."""
        for event in events:
            self.route(envelope_of(event, event_id="0", time=self._clock.now()))

    def route(self, envelope: Envelope) -> None:
        """Deliver one event to every queue whose rule admits it."""
        self._tap(envelope)
        self.counts[envelope["detail-type"]] += 1
        for rule in self._rules:
            if rule.admits(envelope):
                self.queues[rule.queue].put(envelope)
