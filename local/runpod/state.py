"""Everything that a simulated account holds."""

from __future__ import annotations

import random
import string
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from local.runpod.faults import Faults
from local.runpod.market import Market
from local.runpod.paging import PageStyle
from local.runpod.pods import PodRecord, Timing
from local.runpod.registries import Registries
from local.runpod.wire import ProblemError

KEPT_REQUESTS = 20_000


@dataclass(frozen=True)
class Recorded:
    """One request as it came; ``status`` is 0 where no answer was given, ``agent`` the caller's User-Agent."""

    method: str
    path: str
    query: dict[str, str]
    body: bytes
    status: int
    agent: str = ""


@dataclass
class Images:
    """What the registries hold: ``missing`` references, and private ones with their user and password."""

    missing: set[str] = field(default_factory=set)
    private: dict[str, tuple[str, str]] = field(default_factory=dict)


class Account:
    """Pods, credentials, stock and faults of one account. Not thread-safe: the simulator holds the lock."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self.now = now
        self.market = Market()
        self.faults = Faults()
        self.timing = Timing()
        self.pages = PageStyle()
        self.images = Images()
        self.pods: dict[str, PodRecord] = {}
        self.registries = Registries(self._registry_in_use)
        self.requests: list[Recorded] = []
        self.keys: frozenset[str] | None = None
        self.reads_after_delete = 404
        self.most_alive = 0
        self._random = random.Random(20261130)  # noqa: S311  ids, not secrets

    def create_pod(self, content: dict[str, Any]) -> PodRecord:
        """Place a pod. Raises 422 for an image that does not exist, 404 for an unknown credential, 400 for capacity."""
        if content["image"] in self.images.missing:
            # That such a create is a 422 is known; the text is not.
            raise ProblemError(422, f"container image {content['image']} was not found on its registry")
        registry = content.get("registry")
        if registry is not None and self.registries.login(registry) is None:
            raise ProblemError(404, f"container registry auth {registry} not found")
        place, units, price = self.market.take(content)
        record = PodRecord(
            id="".join(self._random.choices(string.ascii_lowercase + string.digits, k=14)),
            number=len(self.pods) + 1,
            content=content,
            place=place,
            units=units,
            price=round(price, 6),
            created_at=self.now(),
            timing=self.timing,
            stuck=self._pull_problem(content),
        )
        record.lines = self._first_lines(record)
        self.pods[record.id] = record
        self.most_alive = max(self.most_alive, len(self.alive()))
        return record

    def pod(self, pod_id: str) -> PodRecord:
        """A pod that can be read, else 404."""
        record = self.pods.get(pod_id)
        if record is None or (record.terminated_at is not None and self.reads_after_delete == 404):
            raise ProblemError(404, "pod not found")
        return record

    def terminate(self, pod_id: str) -> None:
        """End a pod and return its stock; 404 when it is not there any more."""
        record = self.pods.get(pod_id)
        if record is None or record.terminated_at is not None:
            raise ProblemError(404, "pod not found")
        record.terminated_at = self.now()
        self.market.give_back(record.place, record.units)

    def alive(self) -> list[PodRecord]:
        """Pods that are billed in some way, newest first."""
        return [record for record in reversed(self.pods.values()) if record.terminated_at is None]

    def listed(self) -> list[PodRecord]:
        """Pods as lists show them, newest first."""
        now = self.now()
        return [record for record in self.alive() if record.visible(now)]

    def _registry_in_use(self, registry_id: str) -> bool:
        return any(record.content.get("registry") == registry_id for record in self.alive())

    def _pull_problem(self, content: dict[str, Any]) -> str:
        """Why the image will never come. Whether RunPod checks private images at create is unknown; here it pulls."""
        login = self.images.private.get(content["image"])
        if login is None or self.registries.login(content.get("registry") or "") == login:
            return ""
        return f"error pulling image: pull access denied for {content['image']}"

    @staticmethod
    def _first_lines(record: PodRecord) -> list[tuple[str, str]]:
        lines = [("system", f"create container {record.content['image']}")]
        return [*lines, ("system", record.stuck)] if record.stuck else [*lines, ("system", "start container")]
