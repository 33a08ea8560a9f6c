"""moto's SQS, for several callers at once.

moto deletes a message by putting another list in the place of the queue's. Of two deletes at once the later one brings
the other's message back, and a message that arrived between them is in neither's list: nobody ever receives it, and
only the next sweep would find what it said.

And with each call it asks for each message that is in the queue what time it is, by way of three dates.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from moto.sqs import models


def install() -> None:
    """Make every queue of this process one of these."""
    queue: Any = models.Queue
    queue.delete_message = one_after_the_other(queue.delete_message)
    clock: Any = models
    clock.unix_time_millis = milliseconds


def one_after_the_other(delete: Callable[..., None]) -> Callable[..., None]:
    """A queue's method under the lock that moto takes to add a message."""

    def locked(queue: Any, receipt_handle: str) -> None:
        with queue._messages_lock:
            delete(queue, receipt_handle)

    return locked


def milliseconds() -> float:
    """The time as moto's queues count it: milliseconds since 1970."""
    return time.time() * 1000.0
