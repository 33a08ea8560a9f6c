"""One run of ``status_polling``: beat, look, announce; each minute the sweep and the next ticks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from nebula.providers.errors import ProviderError, ProviderUnconfiguredError
from nebula.workflows import gauges
from nebula.workflows.announce import announce_due
from nebula.workflows.known_clusters import missing_clusters
from nebula.workflows.nodes import Beats, beat_nodes
from nebula.workflows.observe import Observation, look
from nebula.workflows.orphans import OrphanPolicy
from nebula.workflows.services import Services
from nebula.workflows.sweep import sweep
from nebula.workflows.ticks import enqueue_ticks
from nebula.workflows.wake import wake_budget_waiters

#: A tick that comes this long after its time has been overtaken by a later one.
STALE_AFTER = timedelta(seconds=60)
#: Kept back from the function's time beside one outside call at its longest, to say where a run stopped.
WRAP_UP = timedelta(seconds=2)
#: Kept back from the scheduled look for the sweep, which would never run after looks that are cut short.
SWEEP_TIME = timedelta(seconds=15)


@dataclass(frozen=True)
class PollReport:
    """What a run did; ``skipped`` says why it did nothing."""

    skipped: str = ""
    handled: int = 0
    due: int = 0
    cut_short: bool = False


def tick(services: Services, *, due_at: datetime | None, until: datetime) -> PollReport:
    """A delayed tick: nothing when it is stale, or when another tick has just done its work."""
    now = services.clock.now()
    if due_at is not None and now - due_at > STALE_AFTER:
        return PollReport(skipped="stale")
    live = _live_clusters(services)
    if not live:
        return PollReport(skipped="no live claims")
    beats = beat_nodes(services, live, services.providers.names(), min_age=services.tick_interval * 2 / 3)
    if beats.needless:
        return PollReport(skipped="done just now")
    return _look(services, until, beats)


def scheduled(services: Services, *, policy: OrphanPolicy, until: datetime) -> PollReport:
    """The schedule's own run: everything a tick does, then the sweep, then the next ticks.

    Each step stands alone: the sweep runs without live claims too, and the ticks are enqueued first,
    so that a run that dies does not stop the heartbeat.
    """
    live = _live_clusters(services)
    beats = Beats()
    if live:
        enqueue_ticks(services)
        beats = beat_nodes(services, live, services.providers.names(), min_age=timedelta(0))
    configured = _configured(services)
    ends_at = until - reserve(services)
    seen = look(services, until=ends_at - SWEEP_TIME, extra_providers=configured, beats=beats)
    seen.unknown.update(f"cluster/{name}" for name in missing_clusters(services))
    due = _wake(services, seen)
    report = sweep(services, seen, policy, until=ends_at)
    gauges.report(services, seen, configured)
    services.telemetry.info(
        "swept",
        handled=seen.handled,
        due=due,
        announced=report.announced,
        ended=report.ended,
        orphans=list(report.orphans.orphans),
        foreign=report.orphans.foreign,
    )
    return PollReport(handled=seen.handled, due=due, cut_short=seen.cut_short)


def reserve(services: Services) -> timedelta:
    """How long before its time is up a run must begin nothing new: a call that was just begun may hang that long."""
    return services.longest_call + WRAP_UP


def _look(services: Services, until: datetime, beats: Beats) -> PollReport:
    seen = look(services, until=until - reserve(services), beats=beats)
    return PollReport(handled=seen.handled, due=_wake(services, seen), cut_short=seen.cut_short)


def _wake(services: Services, seen: Observation) -> int:
    """Freed budget first, so that whoever fits in it is announced with what is due; returns how many."""
    for view in seen.clusters.values():
        if view.pods is not None:
            wake_budget_waiters(services, view.api, view.claims)
    return announce_due(services)


def _live_clusters(services: Services) -> list[str]:
    return [name for name in services.clusters.names() if services.claims.any_live(name)]


def _configured(services: Services) -> list[str]:
    """Providers with a key; one without is named once per run, so that nobody wonders."""
    names = []
    for name in services.providers.names():
        try:
            services.providers.get(name)
            _note_key(services, name)
        except ProviderUnconfiguredError as error:
            services.telemetry.info("provider skipped", provider=name, reason=str(error))
            continue
        except ProviderError as error:
            services.telemetry.warning("provider key unknown", provider=name, error=str(error))
        names.append(name)
    return names


def _note_key(services: Services, name: str) -> None:
    """A new key is a new question: what blocked the provider under the former one is forgotten."""
    fingerprint = services.providers.fingerprint(name)
    before = services.sightings.note(f"key/{name}", fingerprint, services.clock.now())
    if before not in (None, fingerprint):
        cleared = services.blocks.clear(name)
        services.telemetry.info("provider key changed", provider=name, blocks_cleared=cleared)
