"""A share of all outside calls fails, each in one of the ways in which such a call can fail; repeatable by a seed."""

from __future__ import annotations

import functools
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from threading import Lock
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError
from nebula.events.publisher import PublishError
from nebula.kubernetes.api import ClusterUnavailableError
from nebula.kubernetes.api import ConflictError as KubernetesConflictError
from nebula.providers.errors import (
    AuthenticationError,
    NoCapacityError,
    ProviderUnavailableError,
    QuotaExceededError,
    RateLimitedError,
    RequestRefusedError,
    UnsupportedAcceleratorError,
)
from nebula.stores.claims import ConflictError, LedgerBusyError

from local.in_process import DroppedError
from local.kubernetes.errors import ApiError
from local.kubernetes.server import Emulator, Response
from tests.support.tripwire import CrashError

Make = Callable[[], BaseException]


@dataclass(frozen=True)
class Way:
    """One way to fail: what is raised, and whether the call took effect before; ``weight`` among its like."""

    name: str
    make: Make
    after: bool = False
    weight: int = 1


def _throttled() -> ClientError:
    return ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow down"}}, "TransactWriteItems")


def _no_answer() -> ReadTimeoutError:
    return ReadTimeoutError(endpoint_url="https://dynamodb.invalid")


#: A dead function, at the same odds whatever it was about to call.
CRASHES = (Way("crash before", lambda: CrashError("before")), Way("crash after", lambda: CrashError("after"), True))
PROVIDER = (
    Way("provider throttles", lambda: RateLimitedError("slow down", retry_after=timedelta(seconds=5))),
    Way("provider 503", lambda: ProviderUnavailableError("503"), weight=2),
    Way("provider lost answer", lambda: ProviderUnavailableError("read timeout"), True, weight=2),
    Way("provider hiccup of authentication", lambda: AuthenticationError("401")),
)
PROVISION = (
    Way("no capacity", lambda: NoCapacityError("none left"), weight=3),
    Way("quota", lambda: QuotaExceededError("quota"), weight=2),
    Way("throttled create", lambda: RateLimitedError("429", retry_after=timedelta(seconds=3)), weight=2),
    Way("unsupported", lambda: UnsupportedAcceleratorError("not offered here")),
    Way("refused", lambda: RequestRefusedError("not like this")),
    Way("authentication hiccup", lambda: AuthenticationError("401")),
    Way("create 503", lambda: ProviderUnavailableError("503"), weight=3),
    Way("lost create response", lambda: ProviderUnavailableError("read timeout"), True, weight=6),
)
CLUSTER_READ = (
    Way("cluster 429", lambda: ClusterUnavailableError("429")),
    Way("cluster 503", lambda: ClusterUnavailableError("503")),
    Way("cluster read timeout", lambda: ClusterUnavailableError("read timeout"), True),
)
CLUSTER_WRITE = (
    *CLUSTER_READ,
    Way("cluster 409", lambda: KubernetesConflictError("409"), weight=2),
    Way("cluster write lost", lambda: ClusterUnavailableError("read timeout"), True),
)
LEDGER_READ = (Way("ledger read throttled", _throttled), Way("ledger read unanswered", _no_answer, True))
LEDGER_WRITE = (
    Way("ledger throttled", _throttled),
    Way("ledger busy", lambda: LedgerBusyError("rows held")),
    Way("ledger write unanswered", _no_answer, True, weight=2),
)
CLAIM_SAVE = (*LEDGER_WRITE, Way("ledger condition failed", lambda: ConflictError("moved"), weight=2))
BUS = (
    Way("bus refuses", lambda: PublishError("refused")),
    Way("bus answer lost", lambda: PublishError("unknown"), True),
)

#: A client tries a read three times and more, so of ten that fail on the wire far less than two are left.
RETRIED = 0.2
_READS = ("cluster_uid", "get_pod", "list_pods", "get_node_pool", "get_node", "get_lease")
_WRITES = ("patch_pod", "patch_pod_status", "delete_pod", "create_node", "patch_node_status", "create_lease")
_MORE_WRITES = ("patch_lease", "create_event", "patch_event", "patch_node_pool_status")
_CALLS = ("find", "get", "list_instances", "terminate", "account")
WAYS: Mapping[str, Mapping[str, Sequence[Way]]] = {
    "provider": {"provision": PROVISION} | dict.fromkeys(_CALLS, PROVIDER),
    "api": dict.fromkeys(_READS, CLUSTER_READ) | dict.fromkeys((*_WRITES, *_MORE_WRITES), CLUSTER_WRITE),
    "claims": dict.fromkeys(("create", "save"), CLAIM_SAVE) | {"touch": LEDGER_WRITE},
    "ledger reads": dict.fromkeys(("get", "live", "due", "any_live", "budget"), LEDGER_READ),
    "blocks": {"put": LEDGER_WRITE},
    "sightings": {"first_seen": LEDGER_WRITE, "note": LEDGER_WRITE},
    "publisher": {"publish": BUS},
    "ticks": {"enqueue": BUS},
}
#: What an API server says instead of doing it; None: nothing at all. Ways beyond 3 are for writes.
_STATUSES = (429, 500, 503, None, 409, 409)
_READ_STATUSES = 4


class Chaos:
    """Wraps the edges of a world in place; ``share`` of their calls fails inside ``let_loose``.

    Whether a call fails depends on the seed, the call's name, its subject and how often that was asked, so
    that threads do not change it. ``crashes`` is the share of calls at which the function dies besides.
    """

    def __init__(self, seed: int, *, share: float, crashes: float) -> None:
        self.seed = seed
        self.share = share
        self.crashes = crashes
        self.injected: Counter[str] = Counter()
        self._loose = False
        self._asked: Counter[tuple[str, str]] = Counter()
        self._lock = Lock()

    @contextmanager
    def let_loose(self) -> Iterator[None]:
        """Calls made in here may fail; those of a test that merely looks do not."""
        self._loose = True
        try:
            yield
        finally:
            self._loose = False

    def calm(self) -> None:
        """Let nothing fail any more."""
        self.share = self.crashes = 0.0

    def watch(self, kind: str, target: object, *, part: float = 1.0) -> None:
        """Let the calls of one object fail in the ways of its kind, at ``part`` of the share."""
        for method, ways in WAYS[kind].items():
            setattr(target, method, self._wrapped(f"{kind}.{method}", getattr(target, method), ways, part))

    def watch_wire(self, emulator: Emulator) -> None:
        """Let requests to an API server fail on the wire, so that the real client's tries are in play."""
        emulator.faults.append(self._refused)
        emulator.late_faults.append(self._unanswered)

    def _refused(self, method: str, path: str) -> Response | None:
        number = self._drawn("wire", f"{method} {path}", self.share)
        if number is None:
            return None
        status = _STATUSES[number % (_READ_STATUSES if method == "GET" else len(_STATUSES))]
        self._count(f"{'read' if method == 'GET' else 'write'} {status or 'dropped'}")
        if status is None:
            raise DroppedError
        body = json.dumps(ApiError(status, "injected").status()).encode()
        return Response(status, {"Content-Type": "application/json"}, body)

    def _unanswered(self, method: str, path: str) -> Response | None:
        if method == "GET" or self._drawn("late wire", f"{method} {path}", self.share / 3) is None:
            return None
        self._count("write unanswered")
        raise DroppedError

    def _wrapped(self, name: str, method: Any, ways: Sequence[Way], part: float) -> Any:
        weighed = [way for way in ways for _ in range(way.weight)]

        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            way = self._way(name, _subject(args), weighed, part)
            if way is not None and not way.after:
                raise way.make()
            result = method(*args, **kwargs)
            if way is not None:
                raise way.make()
            return result

        return call

    def _way(self, name: str, subject: str, ways: Sequence[Way], part: float) -> Way | None:
        number = self._drawn(f"crash/{name}", subject, self.crashes)
        if number is not None:
            ways = CRASHES
        else:
            number = self._drawn(name, subject, self.share * part)
        if number is None:
            return None
        way = ways[number % len(ways)]
        self._count(way.name)
        return way

    def _drawn(self, name: str, subject: str, share: float) -> int | None:
        """A number to choose a way by, or None when this call is left alone."""
        if not self._loose or not share:
            return None
        with self._lock:
            self._asked[name, subject] += 1
            asked = self._asked[name, subject]
        digest = hashlib.blake2b(f"{self.seed}/{name}/{subject}/{asked}".encode(), digest_size=8).digest()
        luck, number = (int.from_bytes(digest[at : at + 4], "big") for at in (0, 4))
        return number if luck / 2**32 < share else None

    def _count(self, name: str) -> None:
        with self._lock:
            self.injected[name] += 1


def _subject(args: Sequence[Any]) -> str:
    """What a call is about, in words that are the same in each run."""
    words = []
    for arg in args[:2]:
        about = getattr(arg, "mark", arg)
        words.append(str(getattr(about, "claim_id", about if isinstance(about, str) else "")))
    return "/".join(words)
