"""One installation in one process: the functions' own handlers over memory ledgers and the simulated provider.

The handlers are called with SQS batches from as many threads as the template allows (at most ``MAX_CALLS``), the
schedule and the ticks come as in the installation, only ``divisor`` times as often.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from datetime import timedelta
from decimal import Decimal
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from nebula import cold_start
from nebula.clock import SystemClock
from nebula.domain.claim import Claim, Phase, claim_id_for
from nebula.events.memory import MemoryTickQueue
from nebula.kubernetes.client import KubernetesClient
from nebula.kubernetes.transport import StaticToken, Transport, new_session
from nebula.observability import PowertoolsTelemetry
from nebula.providers.simulated import SimulatedProvider
from nebula.stores.memory_blocks import MemoryBlockStore
from nebula.stores.memory_claims import MemoryClaimStore
from nebula.stores.memory_credentials import MemoryCredentialStore
from nebula.stores.memory_sightings import MemorySightingStore
from nebula.workflows.services import Services
from pydantic import SecretStr

from local.deployment import ROOT
from local.template import load
from tests.benchmark.bus import Bus, Envelope, mappings
from tests.benchmark.children import CLUSTER, TOKEN
from tests.support.world import FixedClusters, FixedProviders

#: The functions share one interpreter here: more calls at once only make its threads wait for each other.
MAX_CALLS = 2
TICK = timedelta(seconds=15)
MINUTE = 60.0
_SCHEDULED = {
    "source": "nebula.schedule",
    "detail-type": "Status Poll Scheduled",
    "detail": {"schema_version": 1},
}
_PHASES = {
    Phase.PLACED: "placed",
    Phase.PROVISIONED: "instance",
    Phase.TERMINATING: "terminating",
    Phase.TERMINATED: "gone",
}
_EVENTS = {"Pod Gated": "gated seen", "Pod Deleted": "delete seen"}


class Moments:
    """When what happened first, by claim."""

    def __init__(self) -> None:
        self.seen: dict[str, dict[str, float]] = defaultdict(dict)

    def note(self, claim_id: str, stage: str) -> None:
        """Remember the first time."""
        self.seen[claim_id].setdefault(stage, time.monotonic())

    def heard(self, envelope: Envelope) -> None:
        """A tap on the bus: what the forwarder says."""
        stage = _EVENTS.get(envelope["detail-type"])
        if stage is not None and envelope["source"] == "nebula.kubernetes":
            self.note(claim_id_for(CLUSTER, envelope["detail"]["uid"]), stage)


class WatchedClaims(MemoryClaimStore):
    """The memory ledger, whose moves are noted from outside."""

    def __init__(self, moments: Moments) -> None:
        super().__init__()
        self._moments = moments

    def create(self, claim: Claim, *, budget_limit: Decimal | None = None) -> Claim:
        """See ``ClaimStore.create``."""
        return self._noted(super().create(claim, budget_limit=budget_limit))

    def save(self, previous: Claim, claim: Claim, *, budget_limit: Decimal | None = None) -> Claim:
        """See ``ClaimStore.save``."""
        return self._noted(super().save(previous, claim, budget_limit=budget_limit))

    def _noted(self, claim: Claim) -> Claim:
        stage = _PHASES.get(claim.phase)
        if stage is not None:
            self._moments.note(claim.claim_id, stage)
        return claim


class _Context:
    """What handlers read of Lambda's context."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until this call would be stopped."""
        return max(0, int((self._until - time.monotonic()) * 1000))


def _app(function: str, services: Services) -> ModuleType:
    """A function's module with its edges put in place of AWS's."""
    spec = importlib.util.spec_from_file_location(f"bench_{function}", ROOT / "functions" / function / "app.py")
    if spec is None or spec.loader is None:
        raise ImportError(function)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # As the wiring does once it has built a function's services.
    cold_start.over()
    module.__dict__["services"] = lambda: services
    module.__dict__["settings"] = lambda: SimpleNamespace(reap_orphans="terminate")
    return module


class Installation:
    """The running whole. ``hints`` is where the forwarder's events come in; logs go to ``log``."""

    def __init__(self, url: str, divisor: float, hints: Connection, log: Path) -> None:
        os.environ.setdefault("POWERTOOLS_LOG_LEVEL", "INFO")
        sys.stdout = log.open("w", encoding="utf-8")
        self._log = log
        self._divisor = divisor
        self._clock = SystemClock()
        self._moments = Moments()
        self._claims = WatchedClaims(self._moments)
        self._provider = SimulatedProvider(self._clock)
        self._ticks = MemoryTickQueue(self._clock)
        self._spent: Counter[str] = Counter()
        template = load()
        self._bus = Bus(template, self._clock, self._moments.heard)
        shared: dict[str, Any] = {
            "installation": "bench",
            "clock": self._clock,
            "claims": self._claims,
            "blocks": MemoryBlockStore(),
            "credentials": MemoryCredentialStore(),
            "sightings": MemorySightingStore(),
            "publisher": self._bus,
            "ticks": self._ticks,
            "clusters": FixedClusters(
                KubernetesClient(CLUSTER, Transport(url, StaticToken(SecretStr(TOKEN)), new_session(pool_size=64)))
            ),
            "providers": FixedProviders(self._provider),
            "fingerprint_key": SecretStr("k" * 32),
            "tick_interval": TICK / divisor,
        }
        functions: dict[str, tuple[ModuleType, float]] = {}
        for name, resource in _functions(template):
            services = Services(function=name, telemetry=PowertoolsTelemetry(name), **shared)
            functions[name] = (_app(name, services), float(resource["Timeout"]))
        for mapping in mappings(template):
            call = self._caller(*functions[mapping.function])
            self._bus.queues[mapping.queue].serve(call, mapping.batch_size, min(mapping.concurrency, MAX_CALLS))
        self._scheduled = self._caller(*functions["status_polling"])
        for target in (self._listen, self._schedule, self._deliver_ticks):
            threading.Thread(target=target, args=(hints,) if target == self._listen else (), daemon=True).start()

    def answer(self, question: str) -> Any:
        """``moments`` by claim id, ``facts`` of the run, or ``left`` (live claims and billed instances)."""
        if question == "moments":
            return {claim: dict(stages) for claim, stages in list(self._moments.seen.items())}
        if question == "left":
            return sum(1 for _ in self._claims.live(CLUSTER)) + len(self._provider.console.owned())
        sys.stdout.flush()
        return {
            "events": dict(self._bus.counts),
            "failed_messages": {queue.name: queue.failures for queue in self._bus.queues.values() if queue.failures},
            "calls": {queue.name: queue.calls for queue in self._bus.queues.values()},
            "provider_calls": {str(call): times for call, times in self._provider.script.counts.items()},
            "ledger_writes": self._claims.writes,
            "log_bytes": self._log.stat().st_size,
        }

    def _caller(self, module: ModuleType, timeout: float) -> Callable[[Envelope], Any]:
        return lambda event: module.handler(event, _Context(timeout))

    def _listen(self, hints: Connection) -> None:
        while True:
            try:
                envelopes = hints.recv()
            except EOFError:
                return
            for envelope in envelopes:
                self._bus.route(envelope)

    def _schedule(self) -> None:
        due = time.monotonic()
        while True:
            self._scheduled(dict(_SCHEDULED))
            while due <= time.monotonic():
                due += MINUTE / self._divisor
            time.sleep(max(0.0, due - time.monotonic()))

    def _deliver_ticks(self) -> None:
        while True:
            for due in self._ticks.take_due():
                self._bus.queues["TickQueue"].put(due.body)
            time.sleep(0.01)


def _functions(template: dict[str, Any]) -> Sequence[tuple[str, dict[str, Any]]]:
    found = []
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            properties = resource["Properties"]
            found.append((properties["CodeUri"].strip("/").rsplit("/", 1)[1], properties))
    return found


def installation(url: str, divisor: float, hints: Connection, log: str) -> Callable[[str], Any]:
    """Start it in a child process."""
    return Installation(url, divisor, hints, Path(log)).answer
