"""The ticks between two runs of the schedule."""

from __future__ import annotations

from nebula.events.publisher import PublishError
from nebula.workflows.services import Services

#: The schedule may be late by up to a minute, so they reach into the next.
TICKS_AHEAD = 7


def enqueue_ticks(services: Services) -> None:
    """The next ticks; a queue that does not take them costs the beats until the schedule's next run, and no work."""
    try:
        services.ticks.enqueue([services.tick_interval * number for number in range(1, TICKS_AHEAD + 1)])
    except PublishError as error:
        services.telemetry.error("ticks not enqueued", error=str(error))
        services.telemetry.count("EventsUnsent", TICKS_AHEAD)
