"""Status polling: beats the Nodes, lists each provider once, moves claims, announces what is due."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cache
from typing import Any

import nebula.cold_start  # noqa: F401 - before all that is large
from nebula.events.batch import LambdaContext, handle
from nebula.events.details import DetailType, TickDetail
from nebula.events.envelope import Envelope, MalformedEventError
from nebula.settings import SweepSettings
from nebula.wiring import build
from nebula.workflows.orphans import OrphanPolicy
from nebula.workflows.poll import PollReport, scheduled, tick
from nebula.workflows.services import Services


@cache
def settings() -> SweepSettings:
    """This function's settings, read on its first event."""
    return SweepSettings()


@cache
def services() -> Services:
    """The edges of this function, built on its first event and kept while it is warm."""
    return build("status_polling", settings())


def handler(event: object, context: LambdaContext) -> dict[str, Any]:
    """Take the schedule's event bare, or an SQS batch of ticks; both stop before the function's time is up."""
    until = services().clock.now() + timedelta(milliseconds=context.get_remaining_time_in_millis())
    return handle(event, lambda envelope: _act(envelope, until), services().telemetry)


def _act(envelope: Envelope, until: datetime) -> str:
    detail = envelope.read(TickDetail)
    if envelope.detail_type == DetailType.STATUS_POLL_SCHEDULED:
        policy = OrphanPolicy(terminate=settings().reap_orphans == "terminate")
        return _outcome(scheduled(services(), policy=policy, until=until))
    if envelope.detail_type == DetailType.STATUS_TICK:
        return _outcome(tick(services(), due_at=detail.due_at, until=until))
    raise MalformedEventError("detail-type: not one that status polling is woken by")


def _outcome(report: PollReport) -> str:
    if report.skipped:
        return f"skipped: {report.skipped}"
    return f"{report.handled} claims looked at, {report.due} due" + (", cut short" if report.cut_short else "")
